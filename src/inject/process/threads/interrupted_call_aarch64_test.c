// SPDX-License-Identifier: MIT
// interrupted_call_aarch64_test: registers of stopped threads on AArch64, and the jump with which
// the code of system calls ends.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "inject/process/threads/interrupted_call.h"
#include "inject/process/threads/remote_code.h"
#include "inject/process/threads/thread_regs.h"

enum {
    SP = 0x7000,
    FD = 7,
};

static const uint32_t code[] = {0xd503201f /* nop */, 0xd4000001 /* svc #0 */, 0xd503201f};

static void a_call_gets_its_first_argument_back(void **state)
{
    (void)state;
    const uint64_t behind = (uint64_t)(code + 2);
    static const struct {
        int64_t result;
        int64_t number;
        long number_before;
        int pc_distance; // of the thread, from behind the call
        int sp_distance;
        bool is_restarted;
        uint64_t sleeps; // since then
    } cases[] = {
        {-EINTR, SYS_epoll_pwait, SYS_epoll_pwait, 0, 0, true, 0},
        {-EINTR, SYS_recvfrom, SYS_recvfrom, 0, 0, true, 0},
        {-EINTR, SYS_recvfrom, SYS_recvfrom, 0, 0, false, 1}, // the next one, of another descriptor
        {-EINTR, SYS_nanosleep, SYS_nanosleep, 0, 0, false, 0}, // never returns it for a stop
        {-EINTR, SYS_epoll_pwait, SYS_recvfrom, 0, 0, false, 0},
        {-EINTR, SYS_epoll_pwait, -1, 0, 0, false, 0}, // it ran before it was interrupted
        {-EINTR, SYS_epoll_pwait, SYS_epoll_pwait, -4, 0, false, 0},
        {-EINTR, SYS_epoll_pwait, SYS_epoll_pwait, 0, 16, false, 0},
        {-EAGAIN, SYS_epoll_pwait, SYS_epoll_pwait, 0, 0, false, 0},
        {1, SYS_epoll_pwait, SYS_epoll_pwait, 0, 0, false, 0},
    };
    const struct target_process self = {
        .pid = getpid(), .calls = &kernel_calls_real, .mem_fd = open("/proc/self/mem", O_RDONLY)};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const uint64_t pc = behind + (uint64_t)(int64_t)cases[i].pc_distance;
        const struct current_call before = {.number = cases[i].number_before,
                                            .first_argument = FD,
                                            .sp = SP,
                                            .pc = behind,
                                            .sleeps = proc_files_sleeps(&self, gettid()) -
                                                      cases[i].sleeps};
        struct user_regs_struct regs = {.pc = pc, .sp = SP + (uint64_t)cases[i].sp_distance};
        regs.regs[0] = (uint64_t)cases[i].result;
        regs.regs[8] = (uint64_t)cases[i].number;
        assert_int_equal(interrupted_call_restart(&self, gettid(), &before, &regs),
                         cases[i].is_restarted);
        assert_int_equal(regs.pc, cases[i].is_restarted ? pc - 4 : pc);
        assert_int_equal((int64_t)regs.regs[0], cases[i].is_restarted ? FD : cases[i].result);
    }
    (void)close(self.mem_fd);
}

static void a_thread_that_is_moved_needs_no_landing_pad(void **state)
{
    (void)state;
    struct user_regs_struct regs = {.pc = 0x1000, .pstate = 0x80000c00};
    thread_regs_go_to(&regs, 0x2000);
    assert_int_equal(regs.pc, 0x2000);
    assert_int_equal(regs.pstate, 0x80000000);
}

// The last word before the constants is a branch: Arm ARM, C6.2.26.
static void the_code_ends_where_the_thread_was(void **state)
{
    (void)state;
    static const struct {
        uint64_t addr;
        uint64_t pc;
        bool is_reached;
    } cases[] = {
        {0x10000000, 0x10004000, true},
        {0x10004000, 0x10000000, true},
        {0x10000000, 0x17fff000, true},
        {0x17fff000, 0x10000000, true},
        {0x10000000, 0x18000000, false},
        {0x18000000, 0x10000000, false},
        {0x10000000, UINT64_C(0xffff10000000), false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(remote_code_reaches(cases[i].addr, cases[i].pc), cases[i].is_reached);
        if (!cases[i].is_reached) {
            continue;
        }
        uint8_t bytes[REMOTE_CODE_BYTES_MAX] = {0};
        const struct user_regs_struct regs = {.pc = cases[i].pc};
        const struct remote_code_run run = {.addr = cases[i].addr, .regs = &regs};
        const size_t len = remote_code_write(&run, bytes);
        size_t at = 0;
        while (at < len && (get_u32(bytes + at) >> 26 != 5 ||
                            get_u32(bytes + at) == 0x17fffff3)) { // the loop's own is backwards
            at += 4;
        }
        const int64_t words = (int64_t)((uint64_t)get_u32(bytes + at) << 38) >> 38;
        assert_int_equal(cases[i].addr + at + (uint64_t)(words * 4), cases[i].pc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_gets_its_first_argument_back),
        cmocka_unit_test(a_thread_that_is_moved_needs_no_landing_pad),
        cmocka_unit_test(the_code_ends_where_the_thread_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
