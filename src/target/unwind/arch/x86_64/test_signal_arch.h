// SPDX-License-Identifier: MIT
// test_signal_arch (x86-64): where the kernel saves the registers of an interrupted thread, as libc
// describes it (man 3 getcontext; psABI figure 3.36: DWARF numbers).
//
// Context: tests only.
#pragma once

#include <stddef.h>
#include <sys/ucontext.h>

#define TEST_SAVED(reg) offsetof(ucontext_t, uc_mcontext.gregs[REG_##reg])

// By DWARF number, and the pc.
static const size_t test_signal_places[] = {
    TEST_SAVED(RAX), TEST_SAVED(RDX), TEST_SAVED(RCX), TEST_SAVED(RBX), TEST_SAVED(RSI),
    TEST_SAVED(RDI), TEST_SAVED(RBP), TEST_SAVED(RSP), TEST_SAVED(R8),  TEST_SAVED(R9),
    TEST_SAVED(R10), TEST_SAVED(R11), TEST_SAVED(R12), TEST_SAVED(R13), TEST_SAVED(R14),
    TEST_SAVED(R15), TEST_SAVED(RIP),
};
