// SPDX-License-Identifier: MIT
#include "inject/process/threads/interrupted_call.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"

enum {
    PC = 0x1000
};

// Results as the kernel has them in an interrupted call: include/linux/errno.h.
static void registers_are_those_that_the_kernel_would_set(void **state)
{
    (void)state;
    static const struct {
        int64_t result;
        int64_t number; // -1: not in a call
        int64_t expected_result;
        uint64_t expected_pc;
    } cases[] = {
        {-512, SYS_read, SYS_read, PC - 2},
        {-513, SYS_futex, SYS_futex, PC - 2},
        {-514, SYS_pause, SYS_pause, PC - 2},
        {-516, SYS_nanosleep, SYS_restart_syscall, PC - 2},
        {-EINTR, SYS_epoll_wait, -EINTR, PC},
        {17, SYS_read, 17, PC},
        {0, SYS_futex, 0, PC},
        {-512, -1, -512, PC}, // a register of the program that looks like it
        {12345, -1, 12345, PC},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct user_regs_struct regs = {
            .rax = (uint64_t)cases[i].result, .orig_rax = (uint64_t)cases[i].number, .rip = PC};
        interrupted_call_rewind(&regs);
        assert_int_equal((int64_t)regs.rax, cases[i].expected_result);
        assert_int_equal(regs.rip, cases[i].expected_pc);
        assert_int_equal((int64_t)regs.orig_rax, -1);
    }
}

static void only_calls_that_return_eintr_are_made_again(void **state)
{
    (void)state;
    static const struct {
        int64_t result;
        int64_t number;
        bool is_restarted;
    } cases[] = {
        {-EINTR, SYS_epoll_wait, true},
        {-EINTR, SYS_semtimedop, true},
        {-EINTR, SYS_recvfrom, true},
        {-EINTR, SYS_nanosleep, false},
        {-EINTR, -1, false},
        {-EAGAIN, SYS_epoll_wait, false},
        {-514, SYS_epoll_wait, false},
        {1, SYS_epoll_wait, false},
    };
    const struct current_call none = {.number = -1};
    const struct target_process self = {.pid = getpid(), .calls = &kernel_calls_real};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct user_regs_struct regs = {
            .rax = (uint64_t)cases[i].result, .orig_rax = (uint64_t)cases[i].number, .rip = PC};
        assert_int_equal(interrupted_call_restart(&self, gettid(), &none, &regs),
                         cases[i].is_restarted);
        assert_int_equal(regs.rip, cases[i].is_restarted ? PC - 2 : PC);
        assert_int_equal((int64_t)regs.rax,
                         cases[i].is_restarted ? cases[i].number : cases[i].result);
    }
}

static void calls_that_the_kernel_would_continue_are_made_again(void **state)
{
    (void)state;
    static const struct {
        int64_t result;
        int64_t number;
        bool is_repeated;
    } cases[] = {
        {-516, SYS_nanosleep, true}, {-516, SYS_poll, true},    {-516, -1, false},
        {-514, SYS_poll, false},     {-EINTR, SYS_poll, false}, {1, SYS_poll, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct user_regs_struct regs = {
            .rax = (uint64_t)cases[i].result, .orig_rax = (uint64_t)cases[i].number, .rip = PC};
        assert_int_equal(interrupted_call_repeat(&regs), cases[i].is_repeated);
        assert_int_equal(regs.rip, cases[i].is_repeated ? PC - 2 : PC);
        assert_int_equal((int64_t)regs.rax,
                         cases[i].is_repeated ? cases[i].number : cases[i].result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_are_those_that_the_kernel_would_set),
        cmocka_unit_test(only_calls_that_return_eintr_are_made_again),
        cmocka_unit_test(calls_that_the_kernel_would_continue_are_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
