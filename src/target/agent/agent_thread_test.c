// SPDX-License-Identifier: MIT
// Threads are descriptors made up here, which have their ids where glibc has them, and the real
// threads of the libc that the test runs with.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "session/layout.h"
#include "target/preload/process/process.h"
#include "thread_way.h"

enum {
    DESCRIPTOR_BYTES = 8192,
    DESCRIPTORS = 80, // more than the slots that a thread looks at
    THREADS = 16,
    ROUNDS = 3,
    LOOKS = 1000,
};

static const int32_t tid_offsets[] = ARCH_TID_OFFSETS;

struct agent_page g_agent_page;
static struct process_page no_process;
struct process_page *g_process = &no_process;

struct fixture {
    struct agent_attachment *attachment;
    struct session_header *session;
    uint8_t *descriptors;
};
static struct fixture f;

// Return the thread pointer of a descriptor that has the id at `offset`.
static uint64_t descriptor_at(unsigned index, int32_t offset, uint32_t tid)
{
    uint8_t *at = f.descriptors + (size_t)index * DESCRIPTOR_BYTES + DESCRIPTOR_BYTES / 2;
    memcpy(at + offset, &tid, sizeof(tid));
    return (uint64_t)at;
}

static uint64_t descriptor(unsigned index, uint32_t tid)
{
    return descriptor_at(index, tid_offsets[0], tid);
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
                                       .tid_offset = tid_offsets[0]};
    return 0;
}

// Another thread was the first.
static int set_up_later(void **state)
{
    (void)set_up(state);
    atomic_store(&f.attachment->first_pointer, 1);
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

// Return the memory of a lane's header, and of a thread's state behind it.
static struct lane_header *make_lane(void)
{
    void *lane = aligned_alloc(LANE_HEADER_BYTES, 2 * (size_t)LANE_HEADER_BYTES);
    assert_non_null(lane);
    return memset(lane, 0, 2 * (size_t)LANE_HEADER_BYTES);
}

static void the_first_thread_has_a_slot_apart(void **state)
{
    (void)state;
    const uint64_t first = descriptor(0, 100);
    const uint64_t second = descriptor(1, 101);
    assert_null(agent_thread_at_place(first));
    assert_ptr_equal(agent_thread_take(first), &f.attachment->first);
    assert_null(agent_thread_at_place(second));
    struct agent_thread *slot = f.attachment->threads + agent_thread_place(second);
    assert_ptr_equal(agent_thread_take(second), slot);
    assert_ptr_equal(agent_thread_at_place(first), &f.attachment->first);
    assert_ptr_equal(agent_thread_at_place(second), slot);

    (void)descriptor(0, 102); // another thread has the descriptor now
    assert_null(agent_thread_at_place(first));
    assert_ptr_equal(agent_thread_take(first), &f.attachment->first);
    assert_int_equal(f.attachment->first.tid_word, 102);
}

static void a_thread_keeps_its_slot_and_a_later_one_takes_it(void **state)
{
    (void)state;
    const uint64_t first = descriptor(0, 100);
    struct agent_thread *slot = agent_thread_take(first);
    assert_non_null(slot);
    struct lane_header *lane = make_lane();
    void *held = (uint8_t *)lane + LANE_HEADER_BYTES;
    slot->state = held;
    slot->outer_call = 77;
    assert_ptr_equal(agent_thread_take(first), slot);
    assert_ptr_equal(slot->state, held);

    (void)descriptor(0, 101); // another thread has the descriptor now
    assert_ptr_equal(agent_thread_take(first), slot);
    assert_null(slot->state);
    assert_int_equal(slot->outer_call, 0);

    assert_ptr_not_equal(agent_thread_take(descriptor(1, 102)), slot);
    free(lane);
}

static void a_thread_that_took_the_descriptor_of_another_notes_its_end(void **state)
{
    (void)state;
    const uint64_t thread = descriptor(3, 104);
    struct lane_header *lane = make_lane();
    struct agent_thread *slot = agent_thread_take(thread);
    assert_int_equal(atomic_load(&f.session->ended_lanes), 0); // it was free
    lane->thread_id = slot->thread_id;
    atomic_store(&lane->state, LANE_ACTIVE);
    slot->state = (uint8_t *)lane + LANE_HEADER_BYTES;
    assert_ptr_equal(agent_thread_take(thread), slot);
    assert_int_equal(atomic_load(&f.session->ended_lanes), 0); // the thread itself

    (void)descriptor(3, 105);
    assert_ptr_equal(agent_thread_take(thread), slot);
    assert_int_equal(atomic_load(&f.session->ended_lanes), 1);

    // The recorder has closed that lane already, or given it to another thread.
    slot->state = (uint8_t *)lane + LANE_HEADER_BYTES;
    atomic_store(&lane->state, LANE_CLOSED);
    (void)descriptor(3, 106);
    assert_ptr_equal(agent_thread_take(thread), slot);
    slot->state = (uint8_t *)lane + LANE_HEADER_BYTES;
    atomic_store(&lane->state, LANE_ACTIVE);
    lane->thread_id++;
    (void)descriptor(3, 107);
    assert_ptr_equal(agent_thread_take(thread), slot);
    assert_int_equal(atomic_load(&f.session->ended_lanes), 1);
    free(lane);
}

// The slots that a thread may take, as threads with open lanes.
static struct lane_header *fill_slots(uint64_t thread_pointer)
{
    struct lane_header *lane = make_lane();
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

static int32_t found_offset(uint64_t thread_pointer)
{
    atomic_store(&g_agent_page.tid_offset, 0);
    assert_non_null(agent_thread_take(thread_pointer));
    return atomic_load(&g_agent_page.tid_offset);
}

static void the_id_is_found_where_a_libc_keeps_it(void **state)
{
    (void)state;
    const uint32_t own = (uint32_t)gettid();
    unsigned index = 0;
    for (size_t i = 0; i < ARRAY_LEN(tid_offsets); i++) {
        const uint64_t thread = descriptor_at(index++, tid_offsets[i], own);
        (void)descriptor_at(index - 1, ARCH_TID_OFFSET_END - 4, own); // a stray copy
        assert_int_equal((uint32_t)found_offset(thread), (uint32_t)tid_offsets[i]);
    }
    // Of a libc that is not listed it is the only such word.
    const int32_t other = ARCH_TID_OFFSET_END - 0x44;
    const uint64_t thread = descriptor_at(index, other, own);
    assert_int_equal((uint32_t)found_offset(thread), (uint32_t)other);
    (void)descriptor_at(index, other + 8, own);
    assert_int_equal((uint32_t)found_offset(thread), ARCH_TID_OFFSET_NONE);
    assert_int_equal((uint32_t)found_offset(descriptor_at(index + 1, other, 1)),
                     ARCH_TID_OFFSET_NONE);
}

// What a thread of the libc sees of itself.
struct sight {
    struct agent_thread *slot;
    const void *state; // of the slot, when the thread came to it
    void *own_state;   // behind the header of a lane
    pthread_barrier_t *barrier;
    pthread_t thread;
    uint32_t thread_id;
    bool is_stable;
};

static void *look(void *argument)
{
    struct sight *sight = argument;
    sight->thread_id = (uint32_t)gettid();
    (void)pthread_barrier_wait(sight->barrier); // all at once
    sight->slot = agent_thread_here();
    sight->is_stable = sight->slot != NULL;
    sight->state = sight->slot != NULL ? sight->slot->state : NULL;
    for (int i = 0; i < LOOKS && sight->is_stable; i++) {
        sight->slot->state = sight->own_state;
        sight->is_stable =
            agent_thread_here() == sight->slot && sight->slot->state == sight->own_state &&
            sight->slot->thread_id == sight->thread_id && sight->slot->tid_word == sight->thread_id;
    }
    (void)pthread_barrier_wait(sight->barrier); // none ends before
    return NULL;
}

// Later rounds get stacks and thread pointers of the earlier ones.
static void real_threads_have_slots_of_their_own(void **state)
{
    (void)state;
    struct lane_header *lanes[THREADS];
    for (int i = 0; i < THREADS; i++) {
        lanes[i] = make_lane();
    }
    atomic_store(&g_agent_page.tid_offset, 0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_t barrier;
        assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
        struct sight sights[THREADS] = {0};
        for (int i = 0; i < THREADS; i++) {
            sights[i].barrier = &barrier;
            sights[i].own_state = (uint8_t *)lanes[i] + LANE_HEADER_BYTES;
            assert_int_equal(pthread_create(&sights[i].thread, NULL, look, sights + i), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(sights[i].thread, NULL), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_true(sights[i].is_stable);
            assert_null(sights[i].state);
            for (int k = 0; k < i; k++) {
                assert_ptr_not_equal(sights[i].slot, sights[k].slot);
            }
        }
        (void)pthread_barrier_destroy(&barrier);
    }
    for (int i = 0; i < THREADS; i++) {
        free(lanes[i]);
    }
    // It was the libc's own place, and so the main thread is found there as well.
    const int32_t offset = atomic_load(&g_agent_page.tid_offset);
    assert_int_not_equal((uint32_t)offset, ARCH_TID_OFFSET_NONE);
    assert_int_equal(agent_thread_tid_word(arch_thread_pointer()), (uint32_t)gettid());
}

// Threads get stacks of one size, one below the other, with their descriptors at the top.
static void threads_of_a_process_have_different_places(void **state)
{
    (void)state;
    static const uint64_t strides[] = {16u << 10, (64u << 10) + 4096u, 2u << 20,
                                       (8u << 20) + 4096u};
    for (size_t i = 0; i < ARRAY_LEN(strides); i++) {
        bool is_taken[AGENT_THREADS] = {false};
        for (uint64_t at = 0; at < 1000; at++) {
            const uint32_t place = agent_thread_place(0x7f5d46ddb740 - at * strides[i]);
            assert_false(is_taken[place]);
            is_taken[place] = true;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_of_a_process_have_different_places),
        cmocka_unit_test_setup_teardown(the_first_thread_has_a_slot_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_thread_keeps_its_slot_and_a_later_one_takes_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_thread_keeps_its_slot_and_a_later_one_takes_it,
                                        set_up_later, tear_down),
        cmocka_unit_test_setup_teardown(a_thread_that_took_the_descriptor_of_another_notes_its_end,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_thread_that_took_the_descriptor_of_another_notes_its_end,
                                        set_up_later, tear_down),
        cmocka_unit_test_setup_teardown(without_a_slot_each_event_is_counted_as_lost, set_up_later,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_id_is_found_where_a_libc_keeps_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(real_threads_have_slots_of_their_own, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
