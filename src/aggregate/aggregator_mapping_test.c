// SPDX-License-Identifier: MIT
// Mappings in the aggregator: rows by stack and kind, moves, forks, and hostile input.
#include "aggregate/aggregator_mapping.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "aggregate/aggregator.h"
#include "base/compiler.h"
#include "host/memory/page_size.h"

#define PAGE ((uint64_t)4096)
#define BASE ((uint64_t)16 << 20)

static struct aggregator_process *
begin(struct aggregator *aggregator, uint32_t pid, uint32_t parent, uint32_t flags)
{
    struct aggregator_process *process = NULL;
    const struct rec_process what = {.pid = pid, .parent_pid = parent, .flags = flags};
    assert_int_equal(aggregator_process_begin(aggregator, &what, &process), ERR_OK);
    return process;
}

static void change(struct aggregator *aggregator,
                   struct aggregator_process *process,
                   struct wire_mapping what,
                   uint32_t node)
{
    assert_int_equal(aggregator_mapping(aggregator, process, &what, node), ERR_OK);
}

static void assert_row(const struct aggregator *aggregator, size_t row, struct rec_mapping want)
{
    assert_true(row < aggregator->mappings.len);
    const struct rec_mapping *got = aggregator->mappings.items + row;
    assert_int_equal(got->process, want.process);
    assert_int_equal(got->node, want.node);
    assert_int_equal(got->kind, want.kind);
    assert_int_equal(got->mappings, want.mappings);
    assert_int_equal(got->mapped_bytes, want.mapped_bytes);
    assert_int_equal(got->unmapped_bytes, want.unmapped_bytes);
    assert_int_equal(got->own_peak_bytes, want.own_peak_bytes);
}

static void what_moves_belongs_to_who_moved_it(void **state)
{
    (void)state;
    CLEANUP(aggregator_release) struct aggregator aggregator = {0};
    assert_int_equal(aggregator_init(&aggregator), ERR_OK);
    struct aggregator_process *process = begin(&aggregator, 100, 1, 0);
    // 4 pages and a bit are 5 pages.
    change(
        &aggregator, process,
        (struct wire_mapping){
            .address = BASE, .size_bytes = 4 * PAGE + 1, .number = 1, .kind = WIRE_MAPPING_SHARED},
        7);
    assert_row(&aggregator, 0,
               (struct rec_mapping){.node = 7,
                                    .kind = REC_MAPPING_SHARED,
                                    .mappings = 1,
                                    .mapped_bytes = 5 * PAGE,
                                    .own_peak_bytes = 5 * PAGE});
    change(&aggregator, process,
           (struct wire_mapping){.address = 4 * BASE,
                                 .size_bytes = 8 * PAGE,
                                 .number = 3,
                                 .kind = WIRE_MAPPING_SAME,
                                 .old_address = BASE,
                                 .old_size_bytes = 5 * PAGE,
                                 .old_number = 2},
           8);
    assert_row(&aggregator, 0,
               (struct rec_mapping){.node = 7,
                                    .kind = REC_MAPPING_SHARED,
                                    .mappings = 1,
                                    .mapped_bytes = 5 * PAGE,
                                    .unmapped_bytes = 5 * PAGE,
                                    .own_peak_bytes = 5 * PAGE});
    assert_row(&aggregator, 1,
               (struct rec_mapping){.node = 8,
                                    .kind = REC_MAPPING_SHARED,
                                    .mappings = 1,
                                    .mapped_bytes = 8 * PAGE,
                                    .own_peak_bytes = 8 * PAGE});
    // A shared mapping that is duplicated stays in place.
    change(&aggregator, process,
           (struct wire_mapping){.address = 8 * BASE,
                                 .size_bytes = 2 * PAGE,
                                 .number = 5,
                                 .kind = WIRE_MAPPING_SAME,
                                 .old_address = 4 * BASE,
                                 .old_number = 4},
           9);
    assert_int_equal(aggregator.mappings.items[1].unmapped_bytes, 0);
    assert_int_equal(process->mapped_bytes, 10 * PAGE);
    assert_int_equal(aggregator.totals.sums.allocations, 0); // mappings are no heap
    assert_int_equal(aggregator.totals.rows.rows.len, 0);
}

static void a_break_that_grows_by_bytes_counts_whole_pages_once(void **state)
{
    (void)state;
    CLEANUP(aggregator_release) struct aggregator aggregator = {0};
    assert_int_equal(aggregator_init(&aggregator), ERR_OK);
    struct aggregator_process *process = begin(&aggregator, 100, 1, 0);
    for (uint64_t i = 0; i < 100; i++) {
        change(&aggregator, process,
               (struct wire_mapping){.address = BASE + i * 1000,
                                     .size_bytes = 1000,
                                     .number = i + 1,
                                     .kind = WIRE_MAPPING_BREAK},
               3);
    }
    assert_int_equal(process->mapped_bytes, 25 * PAGE); // 100,000 bytes
    change(&aggregator, process,
           (struct wire_mapping){.old_address = BASE, .old_size_bytes = 100000, .old_number = 200},
           REC_NONE);
    assert_int_equal(process->mapped_bytes, 0);
    assert_int_equal(aggregator.mappings.items[0].own_peak_bytes, 25 * PAGE);
}

static void a_forked_child_has_its_parents_mappings_under_rows_of_its_own(void **state)
{
    (void)state;
    CLEANUP(aggregator_release) struct aggregator aggregator = {0};
    assert_int_equal(aggregator_init(&aggregator), ERR_OK);
    struct aggregator_process *parent = begin(&aggregator, 100, 1, 0);
    change(
        &aggregator, parent,
        (struct wire_mapping){
            .address = BASE, .size_bytes = 4 * PAGE, .number = 9, .kind = WIRE_MAPPING_ANONYMOUS},
        5);
    struct aggregator_process *child = begin(&aggregator, 101, 100, REC_PROCESS_FORKED);
    change(&aggregator, child, // its first change, with a lower number than the parent's
           (struct wire_mapping){.old_address = BASE, .old_size_bytes = PAGE, .old_number = 1},
           REC_NONE);
    assert_int_equal(parent->mapped_bytes, 4 * PAGE);
    assert_int_equal(child->mapped_bytes, 3 * PAGE);
    assert_row(&aggregator, 1,
               (struct rec_mapping){.process = 1,
                                    .node = 5,
                                    .kind = REC_MAPPING_ANONYMOUS,
                                    .mapped_bytes = 4 * PAGE,
                                    .unmapped_bytes = PAGE,
                                    .own_peak_bytes = 4 * PAGE});
    const struct aggregator_process_ending ending = {.end_ms = 1};
    assert_int_equal(aggregator_process_end(&aggregator, child, &ending), ERR_OK);
    assert_int_equal(aggregator.mappings.items[1].unmapped_bytes,
                     PAGE); // as for blocks: it freed nothing
}

// It has a place, which a child inherits, and no row.
static void what_an_allocator_maps_is_apart(void **state)
{
    (void)state;
    CLEANUP(aggregator_release) struct aggregator aggregator = {0};
    assert_int_equal(aggregator_init(&aggregator), ERR_OK);
    struct aggregator_process *process = begin(&aggregator, 100, 1, 0);
    change(&aggregator, process,
           (struct wire_mapping){
               .address = BASE, .size_bytes = 4 * PAGE, .number = 1, .kind = WIRE_MAPPING_HEAP},
           0);
    assert_int_equal(process->mapped_bytes, 0);
    assert_int_equal(aggregator.mappings.len, 0);
    assert_int_equal(mapping_map_at(&process->mapped, BASE)->row, MAPPING_ROW_HEAP);
    struct aggregator_process *child = begin(&aggregator, 101, 100, REC_PROCESS_FORKED);
    change(&aggregator, child, // the program takes a page of it, and moves another one
           (struct wire_mapping){
               .address = BASE, .size_bytes = PAGE, .number = 1, .kind = WIRE_MAPPING_FILE},
           3);
    change(&aggregator, child,
           (struct wire_mapping){.address = 4 * BASE,
                                 .size_bytes = PAGE,
                                 .number = 3,
                                 .kind = WIRE_MAPPING_SAME,
                                 .old_address = BASE + PAGE,
                                 .old_size_bytes = PAGE,
                                 .old_number = 2},
           4);
    assert_int_equal(child->mapped_bytes, 2 * PAGE);
    assert_int_equal(aggregator.mappings.items[1].kind, REC_MAPPING_ANONYMOUS);
    assert_int_equal(mapping_map_at(&child->mapped, BASE + 2 * PAGE)->row, MAPPING_ROW_HEAP);
    change(&aggregator, child,
           (struct wire_mapping){.old_address = BASE, .old_size_bytes = 4 * PAGE, .old_number = 4},
           REC_NONE);
    assert_int_equal(child->mapped_bytes, PAGE);
    assert_true(mapping_map_check(&child->mapped));
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    CLEANUP(aggregator_release) struct aggregator aggregator = {0};
    assert_int_equal(aggregator_init(&aggregator), ERR_OK);
    struct aggregator_process *process = begin(&aggregator, 100, 1, 0);
    static const struct wire_mapping cases[] = {
        {.address = UINT64_MAX, .size_bytes = 1, .kind = WIRE_MAPPING_FILE},
        {.address = PAGE, .size_bytes = UINT64_MAX, .kind = WIRE_MAPPING_FILE},
        {.old_address = UINT64_MAX - PAGE, .old_size_bytes = 2 * PAGE},
        {.address = PAGE, .size_bytes = PAGE, .kind = 0},
        {.address = PAGE, .size_bytes = PAGE, .kind = 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(aggregator_mapping(&aggregator, process, &cases[i], 1), ERR_CORRUPT);
    }
    assert_int_equal(aggregator.mappings.len, 0);
}

int main(void)
{
    g_page_bits = 12; // addresses here are drawn so, whatever this kernel has
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_moves_belongs_to_who_moved_it),
        cmocka_unit_test(a_break_that_grows_by_bytes_counts_whole_pages_once),
        cmocka_unit_test(a_forked_child_has_its_parents_mappings_under_rows_of_its_own),
        cmocka_unit_test(what_an_allocator_maps_is_apart),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
