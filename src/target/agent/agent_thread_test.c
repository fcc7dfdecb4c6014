// SPDX-License-Identifier: MIT
// Threads are descriptors made up here, which have their ids where glibc has them.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "session/layout.h"
#include "target/preload/process/process.h"
#include "thread_way.h"

enum {
    TID_OFFSET = 0x2d0,
    DESCRIPTOR_BYTES = 1024,
    DESCRIPTORS = 80, // more than the slots that a thread looks at
};

struct agent_page g_agent_page;
static struct process_page no_process;
struct process_page *g_process = &no_process;

struct fixture {
    struct agent_attachment *attachment;
    struct session_header *session;
    uint8_t *descriptors;
};
static struct fixture f;

static uint64_t descriptor(unsigned index, uint32_t tid)
{
    uint8_t *at = f.descriptors + (size_t)index * DESCRIPTOR_BYTES;
    memcpy(at + TID_OFFSET, &tid, sizeof(tid));
    return (uint64_t)at;
}

static int set_up(void **state)
{
    (void)state;
    f.attachment = calloc(1, sizeof(*f.attachment));
    f.session = calloc(1, SESSION_PAGE_BYTES);
    f.descriptors = aligned_alloc(DESCRIPTOR_BYTES, (size_t)DESCRIPTORS * DESCRIPTOR_BYTES);
    memset(f.descriptors, 0, (size_t)DESCRIPTORS * DESCRIPTOR_BYTES);
    g_agent_page = (struct agent_page){.attachment = (uint64_t)f.attachment,
                                       .session = (uint64_t)f.session,
                                       .process_page = (uint64_t)&no_process,
                                       .tid_offset = TID_OFFSET};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(f.attachment);
    free(f.session);
    free(f.descriptors);
    return 0;
}

static void a_thread_keeps_its_slot_and_a_later_one_takes_it(void **state)
{
    (void)state;
    const uint64_t first = descriptor(0, 100);
    struct agent_thread *slot = agent_thread_take(first);
    assert_non_null(slot);
    slot->state = &f;
    slot->outer_call = 77;
    assert_ptr_equal(agent_thread_take(first), slot);
    assert_ptr_equal(slot->state, &f);

    (void)descriptor(0, 101); // another thread has the descriptor now
    assert_ptr_equal(agent_thread_take(first), slot);
    assert_null(slot->state);
    assert_int_equal(slot->outer_call, 0);

    assert_ptr_not_equal(agent_thread_take(descriptor(1, 102)), slot);
}

// The slots that a thread may take, as threads with open lanes.
static struct lane_header *fill_slots(uint64_t thread_pointer)
{
    struct lane_header *lane = calloc(2, LANE_HEADER_BYTES);
    lane->thread_id = 9;
    atomic_store(&lane->state, LANE_ACTIVE);
    const uint32_t first = agent_thread_place(thread_pointer);
    for (uint32_t i = 0; i < 64; i++) {
        struct agent_thread *thread = f.attachment->threads + (first + i) % AGENT_THREADS;
        atomic_store(&thread->thread_pointer, 1 + i);
        thread->thread_id = 9;
        thread->state = (uint8_t *)lane + LANE_HEADER_BYTES;
    }
    return lane;
}

static void without_a_slot_each_event_is_counted_as_lost(void **state)
{
    (void)state;
    const uint64_t thread = descriptor(2, 103);
    struct lane_header *lane = fill_slots(thread);
    assert_null(agent_thread_take(thread));
    assert_null(agent_thread_take(thread));
    assert_int_equal(atomic_load(&f.session->counters[LOST_no_lane]), 2);

    // Once the recorder has closed the lane of a thread, its slot is free.
    atomic_store(&lane->state, LANE_CLOSED);
    assert_ptr_equal(agent_thread_take(thread), f.attachment->threads + agent_thread_place(thread));
    assert_int_equal(atomic_load(&f.session->counters[LOST_no_lane]), 2);
    free(lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_thread_keeps_its_slot_and_a_later_one_takes_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(without_a_slot_each_event_is_counted_as_lost, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
