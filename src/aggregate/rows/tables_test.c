// SPDX-License-Identifier: MIT
// The recorder's small tables: stacks, rows, histograms, threads, the index of ids.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregate/rows/bucket_set.h"
#include "aggregate/rows/realloc_table.h"
#include "aggregate/rows/row_table.h"
#include "aggregate/tables/stack_table.h"
#include "aggregate/tables/thread_table.h"
#include "base/compiler.h"
#include "base/test_support/random_numbers.h"

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){.data = (const uint8_t *)text, .len = strlen(text)};
}

static void modules_are_known_by_path_and_build_id(void **state)
{
    (void)state;
    struct string_table strings = {0};
    struct stack_table table;
    assert_int_equal(stack_table_init(&table, &strings), ERR_OK);
    uint32_t a;
    uint32_t b;
    uint32_t c;
    uint32_t d;
    assert_int_equal(stack_table_module(&table, bytes_of("/lib/a"), bytes_of("\xab\x01"), &a), 0);
    assert_int_equal(stack_table_module(&table, bytes_of("/lib/a"), bytes_of("\xab\x02"), &b), 0);
    assert_int_equal(stack_table_module(&table, bytes_of("/lib/b"), bytes_of("\xab\x01"), &c), 0);
    assert_int_equal(stack_table_module(&table, bytes_of("/lib/a"), bytes_of("\xab\x01"), &d), 0);
    assert_int_equal(a, d);
    assert_true(a != b && a != c && b != c);
    assert_string_equal(string_table_get(&strings, table.modules.items[a].build_id), "ab01");
    stack_table_release(&table);
    string_table_release(&strings);
}

static void nodes_are_unique_and_their_parents_come_first(void **state)
{
    (void)state;
    enum {
        FRAMES = 40,
        STEPS = 30000
    };
    struct string_table strings = {0};
    struct stack_table table;
    assert_int_equal(stack_table_init(&table, &strings), ERR_OK);
    uint64_t random = 5;
    uint32_t node = 0;
    for (int i = 0; i < STEPS; i++) {
        uint32_t frame;
        uint32_t child;
        uint32_t again;
        uint64_t offset = next_random(&random) % FRAMES;
        assert_int_equal(stack_table_frame(&table, REC_NONE, offset, 0, &frame), ERR_OK);
        assert_int_equal(stack_table_node(&table, node, frame, &child), ERR_OK);
        assert_int_equal(stack_table_node(&table, node, frame, &again), ERR_OK);
        assert_int_equal(child, again);
        assert_true(stack_table_is_child(&table, child, node, REC_NONE, offset));
        assert_false(stack_table_is_child(&table, child, node, REC_NONE, offset + 1));
        assert_false(stack_table_is_child(&table, child, child, REC_NONE, offset));
        node = next_random(&random) % 8 == 0 ? 0 : child;
    }
    assert_int_equal(table.frames.len, FRAMES);
    for (uint32_t i = 1; i < table.nodes.len; i++) {
        assert_true(table.nodes.items[i].parent < i);
    }
    stack_table_release(&table);
    string_table_release(&strings);
}

static void a_cut_is_a_frame_of_its_own(void **state)
{
    (void)state;
    struct string_table strings = {0};
    struct stack_table table;
    assert_int_equal(stack_table_init(&table, &strings), ERR_OK);
    uint32_t cut;
    uint32_t zero;
    assert_int_equal(stack_table_frame(&table, REC_NONE, 0, REC_FRAME_CUT, &cut), ERR_OK);
    assert_int_equal(stack_table_frame(&table, REC_NONE, 0, 0, &zero), ERR_OK);
    assert_true(cut != zero);
    stack_table_release(&table);
    string_table_release(&strings);
}

static void histograms_are_those_of_a_plain_array(void **state)
{
    (void)state;
    static const uint32_t kinds[] = {1, 2, 5, 17, REC_BUCKET_COUNT, BUCKET_UNKNOWN + 1};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        uint64_t counts[BUCKET_UNKNOWN + 1] = {0};
        uint64_t bytes[BUCKET_UNKNOWN + 1] = {0};
        uint64_t count = 0;
        uint64_t sum = 0;
        uint64_t random = k + 1;
        struct bucket_set set = {0};
        struct rec_bucket_vec got = {0};
        for (int i = 0; i < 4000; i++) {
            uint32_t bucket = (uint32_t)(next_random(&random) % kinds[k]);
            uint64_t size = next_random(&random) % 100;
            assert_int_equal(bucket_set_add(&set, bucket, size, count, sum), ERR_OK);
            counts[bucket]++;
            bytes[bucket] += size;
            count++;
            sum += size;
        }
        assert_int_equal(bucket_set_collect(&set, 3, count, sum, &got), ERR_OK);
        size_t at = 0;
        for (uint32_t bucket = 0; bucket < REC_BUCKET_COUNT; bucket++) {
            if (counts[bucket] > 0) {
                assert_int_equal(got.items[at].bucket, bucket);
                assert_int_equal(got.items[at].count, counts[bucket]);
                assert_int_equal(got.items[at].bytes, bytes[bucket]);
                assert_int_equal(got.items[at++].row, 3);
            }
        }
        assert_int_equal(at, got.len);
        assert_int_equal(at, bucket_set_count(&set, count));
        rec_bucket_vec_release(&got);
        bucket_set_release(&set);
    }
}

// A table is the smallest of 4, 8, 16, ... places of 16 bytes that has one left; a single bucket
// needs none.
static void a_histogram_states_the_memory_of_its_table(void **state)
{
    (void)state;
    struct bucket_set set = {0};
    assert_int_equal(bucket_set_bytes(&set), 0);
    for (uint32_t bucket = 0; bucket <= BUCKET_UNKNOWN; bucket++) {
        assert_int_equal(bucket_set_add(&set, bucket, 10, bucket, (uint64_t)bucket * 10), ERR_OK);
        size_t places = 4;
        while (places <= bucket + 1) {
            places *= 2;
        }
        assert_int_equal(bucket_set_bytes(&set), bucket == 0 ? 0 : places * 16);
    }
    bucket_set_release(&set);
    assert_int_equal(bucket_set_bytes(&set), 0);
}

static void the_memory_of_rows_includes_their_histograms(void **state)
{
    (void)state;
    struct row_table table = {0};
    uint32_t rows[3];
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(row_table_get(&table, 0, i, &rows[i]), ERR_OK);
        assert_int_equal(row_table_allocated(&table, rows[i], 16), ERR_OK);
    }
    assert_int_equal(row_table_count(&table), ERR_OK);
    const size_t before = row_table_bytes(&table);
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(row_table_allocated(&table, rows[i], 5000), ERR_OK); // a second size
        assert_int_equal(row_table_count(&table), ERR_OK);
        assert_int_equal(row_table_bytes(&table), before + (size_t)i * 64);
    }
    row_table_release(&table);
}

static void what_is_unknown_is_in_no_histogram(void **state)
{
    (void)state;
    struct bucket_set set = {0};
    struct rec_bucket_vec got = {0};
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(bucket_set_add(&set, BUCKET_UNKNOWN, 10, i, i * 10), ERR_OK);
    }
    assert_int_equal(bucket_set_count(&set, 3), 0);
    assert_int_equal(bucket_set_collect(&set, 0, 3, 30, &got), ERR_OK);
    assert_int_equal(got.len, 0);
    assert_int_equal(bucket_set_add(&set, 7, 5, 3, 30), ERR_OK);
    assert_int_equal(bucket_set_count(&set, 4), 1);
    assert_int_equal(bucket_set_collect(&set, 0, 4, 35, &got), ERR_OK);
    assert_int_equal(got.len, 1);
    assert_int_equal(got.items[0].bucket, 7);
    assert_int_equal(got.items[0].count, 1);
    assert_int_equal(got.items[0].bytes, 5);
    rec_bucket_vec_release(&got);
    bucket_set_release(&set);
}

static void beyond_the_cap_threads_take_over_ended_ones_of_their_name(void **state)
{
    (void)state;
    enum {
        THREADS = 20000,
        ALIVE = 10
    };
    struct thread_table table = {0};
    uint32_t alive[ALIVE];
    for (uint32_t i = 0; i < THREADS; i++) {
        if (i >= ALIVE) {
            thread_table_end(&table, alive[i % ALIVE], i);
        }
        uint32_t process = i % 2;
        rec_string name = 7 + i % 3;
        assert_int_equal(thread_table_begin(&table, process, 1000 + i, name, i, &alive[i % ALIVE]),
                         ERR_OK);
        const struct rec_thread *entry = table.threads.items + alive[i % ALIVE];
        assert_int_equal(entry->process, process);
        assert_int_equal(entry->name, name);
        assert_int_equal(entry->end_ms, 0);
    }
    assert_in_range(table.threads.len, THREADS_APART, THREADS_APART + 6 * ALIVE);
    uint64_t merged = 0;
    for (size_t i = 0; i < table.threads.len; i++) {
        merged += table.threads.items[i].merged_count;
    }
    assert_int_equal(merged, THREADS);
    thread_table_release(&table);
}

// Rows 3 and 9 become one, and keep their sums.
static void reallocs_of_joined_rows_are_added(void **state)
{
    (void)state;
    struct realloc_table table = {0};
    CLEANUP(rec_realloc_vec_release) struct rec_realloc_vec got = {0};
    assert_int_equal(realloc_table_collect(&table, &got), ERR_OK);
    assert_int_equal(got.len, 0);
    assert_int_equal(realloc_table_add(&table, 9, 4000, 5000), ERR_OK);
    assert_int_equal(realloc_table_add(&table, 3, 8192, 16384), ERR_OK);
    assert_int_equal(realloc_table_add(&table, 5, UINT64_MAX - 1, UINT64_MAX), ERR_OK);
    assert_int_equal(realloc_table_add(&table, 5, 4096, 4097), ERR_OK); // saturates
    const uint32_t numbers[10] = {[3] = 2, [5] = 1, [9] = 2};
    assert_int_equal(realloc_table_renumber(&table, numbers), ERR_OK);
    assert_int_equal(realloc_table_add(&table, 2, 100, 4096), ERR_OK);
    assert_int_equal(realloc_table_collect(&table, &got), ERR_OK);
    const struct rec_realloc want[] = {
        {.row = 1,
         .reallocs = 2,
         .moved_bytes = UINT64_MAX,
         .grown_bytes = 2,
         .largest_bytes = UINT64_MAX},
        {.row = 2,
         .reallocs = 3,
         .moved_bytes = 12292,
         .grown_bytes = 13188,
         .largest_bytes = 16384},
    };
    assert_int_equal(got.len, ARRAY_LEN(want));
    assert_memory_equal(got.items, want, sizeof(want));
    realloc_table_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_are_known_by_path_and_build_id),
        cmocka_unit_test(nodes_are_unique_and_their_parents_come_first),
        cmocka_unit_test(a_cut_is_a_frame_of_its_own),
        cmocka_unit_test(histograms_are_those_of_a_plain_array),
        cmocka_unit_test(reallocs_of_joined_rows_are_added),
        cmocka_unit_test(a_histogram_states_the_memory_of_its_table),
        cmocka_unit_test(the_memory_of_rows_includes_their_histograms),
        cmocka_unit_test(what_is_unknown_is_in_no_histogram),
        cmocka_unit_test(beyond_the_cap_threads_take_over_ended_ones_of_their_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
