// SPDX-License-Identifier: MIT
// thread_regs: what the steps at a stopped thread need of its registers, one set of functions for
// each machine.
//
//   read, write      by ptrace; both return what it returns
//   pc, sp, go_to    go_to also ends what the instruction before expects of the next one
//   forget_call      the thread is in no system call any more: the kernel restarts none
//   is_in_call       whether it is stopped in one; on AArch64 the kernel has forgotten it by then
//   may_call         whether the thread can make a system call here without losing a register
//   return           from a function whose first instruction the thread has not left
//
// Context: H.
#pragma once

#include "thread_regs_arch.h" // IWYU pragma: export
