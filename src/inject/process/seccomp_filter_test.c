// SPDX-License-Identifier: MIT
// Filters with known answers, and the kernel's own copy of the filters of a child.
#include "inject/process/seccomp_filter.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "inject/process/kernel_calls.h"

#define LOAD(field)     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(k, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, skip)
#define RETURN(what)    BPF_STMT(BPF_RET | BPF_K, what)
#define ALU(op, k)      BPF_STMT(BPF_ALU | (op) | BPF_K, k)
#define DENY            SECCOMP_RET_KILL_PROCESS

static void a_filter_says_here_what_it_says_to_the_kernel(void **state)
{
    (void)state;
    static const struct {
        struct sock_filter code[8];
        size_t count;
        uint32_t wanted;
    } cases[] = {
        {{RETURN(SECCOMP_RET_ALLOW)}, 1, SECCOMP_RET_ALLOW},
        {{LOAD(nr), UNLESS(7, 1), RETURN(SECCOMP_RET_ALLOW), RETURN(5)}, 4, SECCOMP_RET_ALLOW},
        {{LOAD(nr), UNLESS(8, 1), RETURN(SECCOMP_RET_ALLOW), RETURN(5)}, 4, 5},
        {{LOAD(args[1]), BPF_STMT(BPF_RET | BPF_A, 0)}, 2, 9},
        {{LOAD(nr), BPF_STMT(BPF_ST, 3), ALU(BPF_LSH, 4), BPF_STMT(BPF_LDX | BPF_MEM, 3),
          BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0), BPF_STMT(BPF_RET | BPF_A, 0)},
         6,
         7 * 16 + 7},
        {{LOAD(nr), BPF_STMT(BPF_MISC | BPF_TAX, 0), ALU(BPF_AND, 0),
          BPF_STMT(BPF_MISC | BPF_TXA, 0), BPF_STMT(BPF_RET | BPF_A, 0)},
         5,
         7},
        {{LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 1, 0), RETURN(1), RETURN(2)}, 4, 2},
        {{LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 7, 1, 0), RETURN(1), RETURN(2)}, 4, 1},
        {{LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 7, 1, 0), RETURN(1), RETURN(2)}, 4, 2},
        {{BPF_STMT(BPF_JMP | BPF_JA, 1), RETURN(1), RETURN(2)}, 3, 2},
        // What the kernel does not accept, or ends by a kill.
        {{RETURN(0)}, 0, DENY},
        {{LOAD(nr)}, 1, DENY},
        {{BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), RETURN(1)}, 2, DENY},
        {{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 62), RETURN(1)}, 2, DENY},
        {{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), RETURN(1)}, 2, DENY},
        {{BPF_STMT(BPF_LD | BPF_MEM, 16), RETURN(1)}, 2, DENY},
        {{BPF_STMT(BPF_STX, 16), RETURN(1)}, 2, DENY},
        {{ALU(BPF_DIV, 0), RETURN(1)}, 2, DENY},
    };
    const struct seccomp_data data = {.nr = 7, .args = {0, 9}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const uint32_t got = seccomp_filter_run(cases[i].code, cases[i].count, &data);
        if (got != cases[i].wanted) {
            fail_msg("case %zu: 0x%x instead of 0x%x", i, got, cases[i].wanted);
        }
    }
}

static void a_filter_calculates(void **state)
{
    (void)state;
    static const struct {
        uint16_t operation;
        uint32_t operand;
        uint32_t wanted; // of 7
    } cases[] = {
        {BPF_ADD, 3, 10},     {BPF_SUB, 3, 4}, {BPF_SUB, 8, UINT32_MAX}, {BPF_MUL, 3, 21},
        {BPF_DIV, 2, 3},      {BPF_MOD, 4, 3}, {BPF_AND, 3, 3},          {BPF_AND, 8, 0},
        {BPF_OR, 8, 15},      {BPF_XOR, 2, 5}, {BPF_LSH, 2, 28},         {BPF_RSH, 1, 3},
        {BPF_NEG, 0, 0u - 7},
    };
    const struct seccomp_data data = {.nr = 7};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct sock_filter code[] = {LOAD(nr), ALU(cases[i].operation, cases[i].operand),
                                           BPF_STMT(BPF_RET | BPF_A, 0)};
        const uint32_t got = seccomp_filter_run(code, ARRAY_LEN(code), &data);
        if (got != cases[i].wanted) {
            fail_msg("case %zu: 0x%x instead of 0x%x", i, got, cases[i].wanted);
        }
    }
}

// A stopped child with a filter that answers one call so.
static pid_t begin_child(long number, uint32_t answer)
{
    const pid_t child = fork();
    if (child == 0) {
        struct sock_filter code[] = {LOAD(nr), UNLESS((uint32_t)number, 1), RETURN(answer),
                                     RETURN(SECCOMP_RET_ALLOW)};
        const struct sock_fprog program = {.len = ARRAY_LEN(code), .filter = code};
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        _exit(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 || raise(SIGSTOP) != 0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSTOPPED(status));
    return child;
}

static void filters_are_read_from_a_stopped_thread(void **state)
{
    (void)state;
    static const struct {
        long number;
        uint32_t answer;
        bool permits;
    } cases[] = {
        {SYS_ptrace, SECCOMP_RET_KILL_PROCESS, true}, // not one of ours
        {SYS_futex, SECCOMP_RET_KILL_PROCESS, false},
        {SYS_rt_sigprocmask, SECCOMP_RET_TRAP, false},
        {SYS_sched_yield, SECCOMP_RET_ERRNO | 1, false},
        {SYS_futex, SECCOMP_RET_LOG, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const pid_t child = begin_child(cases[i].number, cases[i].answer);
        const struct target_process target = {.pid = child, .calls = &kernel_calls_real};
        bool permits = !cases[i].permits;
        const enum err err = seccomp_filter_check(&target, child, &permits);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        if (err == ERR_PERMISSION) {
            skip(); // only root may read them
        }
        assert_int_equal(err, ERR_OK);
        assert_int_equal(permits, cases[i].permits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_says_here_what_it_says_to_the_kernel),
        cmocka_unit_test(a_filter_calculates),
        cmocka_unit_test(filters_are_read_from_a_stopped_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
