// SPDX-License-Identifier: MIT
// Tests when a waiting thread gives its recorder up, by a clock of the test's own.
#include "target/producer/waiting/recorder_liveness.h"

#include <linux/futex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/sys.h"
#include "base/test_support/dead_process.h"
#include "target/producer/lane_producer.h"

// The session's beginning, up to the slot of the lane's process.
static _Alignas(4096) char memory[SESSION_PROCESS_OFFSET + sizeof(struct process_slot)];
static struct session_header *const session = (struct session_header *)(void *)memory;
static struct lane_header lane;

// Check every `step_ms` until patience is over or `limit_ms` have passed; return the time of the
// last check. The clock and the read position move at every check if the arguments say so.
static uint64_t
ask_until_over(uint64_t step_ms, uint64_t limit_ms, bool clock_moves, bool read_moves)
{
    struct patience patience;
    patience_init(&patience, session, &lane);
    uint64_t passed_ms = 0;
    while (passed_ms < limit_ms) {
        passed_ms += step_ms;
        session->clock_ms += clock_moves;
        lane.read_pos += read_moves ? 8 : 0;
        if (patience_is_over_at(&patience, session, &lane, patience.now_ns + step_ms * 1000000u)) {
            return passed_ms;
        }
    }
    return UINT64_MAX;
}

static void patience_depends_on_clock_pid_and_progress(void **state)
{
    (void)state;
    const uint32_t dead = dead_process_pid();
    const uint32_t alive = (uint32_t)getpid();
    const uint64_t never = UINT64_MAX;
    const struct {
        const char *name;
        uint32_t pid;
        uint32_t own_namespace; // 0: unknown
        uint32_t pid_namespace; // of the recorder
        uint64_t step_ms;
        bool clock_moves;
        bool read_moves;
        uint64_t over_ms; // at the first check at which it may be
    } cases[] = {
        {"dead and silent", dead, 1, 1, 50, false, false, 250},
        {"dead and silent, and who knows where", dead, 1, 0, 50, false, false, 3000},
        {"dead and silent, and who knows where we are", dead, 0, 1, 50, false, false, 3000},
        {"dead and silent, and nobody has a /proc", dead, 0, 0, 50, false, false, 250},
        {"silent, and its pid is another namespace's", dead, 1, 2, 50, false, false, 3000},
        {"dead, but its clock moves", dead, 1, 1, 50, true, true, never},
        {"there, but silent", alive, 1, 1, 50, false, false, 3000},
        {"silent, but it reads", alive, 1, 1, 50, false, true, 3000},
        {"there, and this lane is forgotten", alive, 1, 1, 50, true, false, 30000},
        {"there and well", alive, 1, 1, 50, true, true, never},
        {"we were stopped for ten seconds at a time", alive, 1, 1, 10000, false, false, 300000},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        session->recorder_pid = cases[i].pid;
        session->recorder_namespace = cases[i].pid_namespace;
        session_process(session, lane.process_index)->pid_namespace = cases[i].own_namespace;
        const uint64_t over_ms =
            ask_until_over(cases[i].step_ms, 400000, cases[i].clock_moves, cases[i].read_moves);
        if (over_ms != cases[i].over_ms) {
            fail_msg("%s: over after %lu ms", cases[i].name, (unsigned long)over_ms);
        }
    }
}

static uint64_t thread_ns(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Without system calls turns are counted. While the recorder rests, which then looks for such
// threads only once a second, they are about as long as they were measured. Its death is seen at
// once.
static void a_thread_without_system_calls_counts_turns(void **state)
{
    (void)state;
    enum {
        TURNS = 64,
        TIMES = 5, // that a turn may differ, on a processor that others use
    };
    static const uint64_t clocks[] = {1, 1 | SESSION_CLOCK_RESTS};
    for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
        patience_measure_turn(); // by now a processor that has rested is as fast as in the turns
        struct patience patience;
        session->clock_ms = clocks[i];
        patience_init(&patience, session, &lane);
        sys_forbid(true);
        const uint64_t from_ns = patience.now_ns;
        const uint64_t began_ns = thread_ns();
        for (int turn = 0; turn < TURNS; turn++) {
            assert_false(patience_is_over(&patience, session, &lane));
        }
        const uint64_t spun_ns = thread_ns() - began_ns;
        const uint64_t counted_ns = patience.turns_ns - from_ns;
        print_message("%d turns: %lu us, counted as %lu\n", TURNS, (unsigned long)spun_ns / 1000,
                      (unsigned long)counted_ns / 1000);
        if (i == 0) {
            assert_int_equal(counted_ns, (uint64_t)TURNS * 1000000);
        } else {
            assert_in_range(counted_ns, spun_ns / TIMES, spun_ns * TIMES);
        }
        session->recorder_life = FUTEX_OWNER_DIED | 77;
        assert_true(patience_is_over(&patience, session, &lane));
        session->recorder_life = 77;
        sys_forbid(false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_without_system_calls_counts_turns),
        cmocka_unit_test(patience_depends_on_clock_pid_and_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
