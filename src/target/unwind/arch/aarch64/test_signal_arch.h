// SPDX-License-Identifier: MIT
// test_signal_arch (AArch64): where the kernel saves the registers of an interrupted thread, as
// libc describes it. The frame begins with the siginfo (arch/arm64/kernel/signal.c).
//
// Context: tests only.
#pragma once

#include <signal.h>
#include <stddef.h>
#include <sys/ucontext.h>

#define TEST_SAVED(reg) (sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.regs[reg]))

// By DWARF number, and the pc.
static const size_t test_signal_places[] = {
    TEST_SAVED(0),
    TEST_SAVED(1),
    TEST_SAVED(2),
    TEST_SAVED(3),
    TEST_SAVED(4),
    TEST_SAVED(5),
    TEST_SAVED(6),
    TEST_SAVED(7),
    TEST_SAVED(8),
    TEST_SAVED(9),
    TEST_SAVED(10),
    TEST_SAVED(11),
    TEST_SAVED(12),
    TEST_SAVED(13),
    TEST_SAVED(14),
    TEST_SAVED(15),
    TEST_SAVED(16),
    TEST_SAVED(17),
    TEST_SAVED(18),
    TEST_SAVED(19),
    TEST_SAVED(20),
    TEST_SAVED(21),
    TEST_SAVED(22),
    TEST_SAVED(23),
    TEST_SAVED(24),
    TEST_SAVED(25),
    TEST_SAVED(26),
    TEST_SAVED(27),
    TEST_SAVED(28),
    TEST_SAVED(29),
    TEST_SAVED(30),
    sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.sp),
    sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.pc),
};
