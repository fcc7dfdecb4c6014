// SPDX-License-Identifier: MIT
// Tests what is announced while a realloc is under way: the recorder waits for the earliest stamp.
#include "target/preload/record/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "target/preload/process/process.h"
#include "target/preload/process/thread_state.h"

enum {
    SIGNAL_FRAME_BYTES = 1080, // what the kernel puts below a function that a signal interrupts
};

static struct session_header *g_session;
static struct process_page g_page;
static const int g_blocks[2];

// Join a session in which several threads record.
static int join(void **state)
{
    (void)state;
    g_session = mmap(NULL, SESSION_LANES_OFFSET + LANE_STRIDE, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(g_session, MAP_FAILED);
    g_session->max_frames = 64;
    atomic_store(&g_session->state, SESSION_RUNNING);
    atomic_store(&g_session->order, SESSION_ORDER_SEVERAL);
    atomic_store(&g_page.session, g_session);
    atomic_store(&g_page.generation, (uint64_t)1 << 32);
    process_mapping()->header = g_session;
    process_mapping()->lane_count = 1;
    g_process = &g_page;
    assert_non_null(thread_state_open());
    return 0;
}

static int part(void **state)
{
    (void)state;
    thread_way_set_state(NULL);
    return munmap(g_session, SESSION_LANES_OFFSET + LANE_STRIDE);
}

static uint64_t announced(void)
{
    return atomic_load(&thread_way_state()->producer.lane->pending_stamps[LANE_PENDING_REALLOC]);
}

static NOINLINE struct freed_note begin_in_handler(void)
{
    uint8_t frame[SIGNAL_FRAME_BYTES];
    __asm__ volatile("" ::"r"(frame) : "memory"); // it is needed
    const struct freed_note inner = record_realloc_begins(g_blocks + 1);
    __asm__ volatile("" ::"r"(frame) : "memory"); // until here
    return inner;
}

static void a_realloc_in_a_handler_leaves_the_outer_one_announced(void **state)
{
    (void)state;
    const struct freed_note outer = record_realloc_begins(g_blocks);
    assert_int_not_equal(outer.stamp, 0);
    assert_int_equal(announced(), outer.stamp);
    for (int i = 0; i < 2; i++) {
        const struct freed_note inner = begin_in_handler();
        assert_true(inner.stamp > outer.stamp);
        assert_int_equal(announced(), outer.stamp);
        record_realloc_ends(inner);
        assert_int_equal(announced(), outer.stamp);
    }
    record_realloc_ends(outer);
    assert_int_equal(announced(), 0);
}

static void a_realloc_that_was_left_is_not_announced_for_ever(void **state)
{
    (void)state;
    const struct freed_note left = begin_in_handler();
    assert_int_equal(announced(), left.stamp);
    const struct freed_note next = record_realloc_begins(g_blocks);
    assert_int_equal(announced(), next.stamp);
    record_realloc_ends(next);
    assert_int_equal(announced(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_realloc_in_a_handler_leaves_the_outer_one_announced, join,
                                        part),
        cmocka_unit_test_setup_teardown(a_realloc_that_was_left_is_not_announced_for_ever, join,
                                        part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
