// SPDX-License-Identifier: MIT
// Names of forked children, whose parents' lanes are read after theirs: one process acts as the
// parent, a child, and a child of that child.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "recorder/ingest/test_books.h"
#include "recorder/ingest/test_session.h"

enum {
    SLOT = 1,
    NOBODY = 0x3ffffff0, // not a pid: beyond the kernel's limit, so dead and read first
};

static uint32_t join(struct test_session *t, uint32_t pid, uint32_t parent_pid, uint32_t flags)
{
    const uint32_t index = test_session_add_process(t);
    struct process_slot *slot = session_process(t->mapping.header, index);
    slot->pid = pid;
    slot->parent_pid = parent_pid;
    slot->flags = flags;
    slot->join_number = atomic_fetch_add(&t->mapping.header->join_count, 1);
    return index;
}

static struct bytes text_of(const char *text)
{
    return (struct bytes){.data = (const uint8_t *)text, .len = strlen(text)};
}

// Make an allocation from a frame of the executable itself.
static void allocate_in_main(struct lane_producer *p)
{
    const struct lane_module module = {
        .slot = SLOT, .flags = WIRE_MODULE_MAIN, .end = 0x100000, .build_id = text_of("id")};
    assert_true(lane_producer_tick(p));
    assert_int_equal(lane_producer_send_module(p, &module), ERR_OK);
    uint64_t *frames = lane_producer_begin_stack(p, SLOT, WIRE_STACK_HAS_SLOT, 0, 1);
    assert_non_null(frames);
    frames[0] = (uint64_t)SLOT << WIRE_OFFSET_BITS | 0x1000;
    lane_producer_advance(p, lane_stack_words(1));
    test_send_row(p, SLOT, 1);
    test_send_event(p, TEST_ALLOCATION, 1, 100);
}

static void pass(struct test_session *t, uint64_t clock_ms)
{
    bool was_busy;
    atomic_store(&t->session.header->clock_ms, clock_ms);
    drain_find_dead(&t->drain);
    for (uint64_t i = 0; i < 2; i++) {
        drain_note_time(&t->drain, clock_ms, (2 * clock_ms + i) * 1000000);
    }
    assert_int_equal(drain_pass(&t->drain, clock_ms, false, &was_busy), ERR_OK);
}

static void children_are_called_as_their_parent_whoever_is_read_first(void **state)
{
    (void)state;
    for (unsigned texts_last = 0; texts_last < 2; texts_last++) {
        static struct test_session t;
        struct lane_producer lanes[3]; // the youngest first
        test_session_open(&t, SESSION_FOLLOW_CHILDREN);
        const uint32_t parent = join(&t, (uint32_t)getpid(), 1, 0);
        const uint32_t child = join(&t, NOBODY, (uint32_t)getpid(), PROCESS_FORKED);
        const uint32_t grandchild = join(&t, NOBODY + 1, NOBODY, PROCESS_FORKED);
        const uint32_t slots[] = {grandchild, child, parent};
        for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
            test_session_add_lane(&t, slots[i], &lanes[i]);
        }
        if (texts_last != 0) { // as of a constructor that came first
            for (uint64_t i = 0; i < 2000; i++) {
                uint64_t *word = lane_producer_reserve(&lanes[2], 1);
                *word = wire_word(WIRE_TICK, 1);
                lane_producer_advance(&lanes[2], 1);
            }
        }
        lane_producer_send_text(&lanes[2], WIRE_TEXT_EXECUTABLE, text_of("/bin/app"), false);
        lane_producer_send_text(&lanes[2], WIRE_TEXT_COMMAND_LINE, text_of("app\0-x"), false);
        lane_producer_send_text(&lanes[2], WIRE_TEXT_ALLOCATOR, text_of("/lib/libc"), false);
        lane_producer_publish(&lanes[2]);
        for (size_t i = 0; i < ARRAY_LEN(lanes); i++) {
            allocate_in_main(&lanes[i]);
        }
        for (uint64_t clock_ms = 2; clock_ms < 6; clock_ms++) {
            pass(&t, clock_ms);
        }
        const struct aggregator *aggregator = &t.aggregator;
        assert_int_equal(aggregator->totals.sums.allocations, 3);
        assert_int_equal(aggregator->processes.len, 3);
        for (size_t i = 0; i < 3; i++) {
            struct aggregator_process *process = aggregator->processes.items[i];
            aggregator_process_inherit(aggregator, process); // as snapshots do
            const struct rec_process *record = &process->record;
            assert_string_equal(string_table_get(&aggregator->strings, record->executable),
                                "/bin/app");
            assert_string_equal(string_table_get(&aggregator->strings, record->command_line),
                                "app");
            assert_string_equal(string_table_get(&aggregator->strings, record->allocator),
                                "/lib/libc");
        }
        assert_int_equal(aggregator->stacks.modules.len, 1); // one executable, of all three
        assert_string_equal(
            string_table_get(&aggregator->strings, aggregator->stacks.modules.items[0].path),
            "/bin/app");
        assert_int_equal(aggregator->stacks.nodes.len, 2);
        test_session_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_are_called_as_their_parent_whoever_is_read_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
