// SPDX-License-Identifier: MIT
#include "recording/test_support/recording_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

static struct recording drawn(const char *text)
{
    struct recording r = {0};
    struct err_info info = {0};
    if (recording_from_text(text, &r, &info) != ERR_OK) {
        fail_msg("%s", info.text);
    }
    return r;
}

static const char *function_of(const struct recording *r, uint32_t node, uint32_t inlined)
{
    const struct rec_frame *frame = &r->frames[r->nodes[node].frame];
    return rec_string_get(r, r->symbols[frame->symbol_first + inlined].function);
}

static void stacks_that_begin_alike_share_their_nodes(void **state)
{
    (void)state;
    CLEANUP(recording_release)
    struct recording r = drawn("main;load;parse 10 640 4 256 1 64 6 384 400\n"
                               "main;load 2 32\n"
                               "main;load;parse 1 60\n");
    assert_int_equal(r.node_count, 4);
    assert_int_equal(r.row_count, 2);
    assert_int_equal(r.rows[0].node, 3);
    assert_int_equal(r.rows[1].node, 2);
    assert_int_equal(r.rows[0].allocations, 11);
    assert_int_equal(r.rows[0].allocated_bytes, 700);
    assert_int_equal(r.rows[0].own_peak_bytes, 400);
    assert_int_equal(r.totals.allocations, 13);
    assert_int_equal(r.totals.allocated_bytes, 732);
    assert_int_equal(r.totals.frees, 4);
    assert_int_equal(r.totals.peak_bytes, 384);
    assert_string_equal(function_of(&r, 3, 0), "parse");
    assert_string_equal(function_of(&r, 1, 0), "main");
    assert_int_equal(r.thread_count, 1);
    assert_string_equal(rec_string_get(&r, r.threads[0].name), "main");
}

static void frames_carry_modules_places_and_inlined_functions(void **state)
{
    (void)state;
    CLEANUP(recording_release)
    struct recording r =
        drawn("app!main(app.c:12);libx.so!outer(x.c:3)=>std::vector<int, A>::grow(v.h:9) 1 8\n");
    assert_int_equal(r.node_count, 3);
    const struct rec_frame *frame = &r.frames[r.nodes[2].frame];
    assert_int_equal(frame->symbol_count, 2);
    assert_string_equal(function_of(&r, 2, 0), "std::vector<int, A>::grow");
    assert_string_equal(function_of(&r, 2, 1), "outer");
    assert_int_equal(r.symbols[frame->symbol_first].line, 9);
    assert_string_equal(rec_string_get(&r, r.symbols[frame->symbol_first + 1].file), "x.c");
    assert_string_equal(rec_string_get(&r, r.modules[frame->module].path), "libx.so");
    assert_string_equal(rec_string_get(&r, r.modules[r.frames[r.nodes[1].frame].module].path),
                        "app");
}

static void processes_threads_and_details_belong_to_what_precedes_them(void **state)
{
    (void)state;
    CLEANUP(recording_release)
    struct recording r = drawn("process server\n"
                               "thread worker\n"
                               "  main;work 3 30 1 10\n"
                               "  @2 1 10 1 10\n"
                               "  @0 2 20\n"
                               "  size 8 3 30\n"
                               "  life 1 1 10\n"
                               "  cohort 0 - 2 20\n"
                               "# the same stack elsewhere is another row\n"
                               "thread other\n"
                               "main;work 1 1\n"
                               "process child\n"
                               "main;work 1 2\n");
    assert_int_equal(r.process_count, 2);
    assert_int_equal(r.thread_count, 3);
    assert_int_equal(r.threads[2].process, 1);
    assert_int_equal(r.row_count, 3);
    assert_int_equal(r.rows[1].node, r.rows[0].node);
    assert_int_equal(r.slice_count, 3);
    assert_int_equal(r.slice_ms, 100);
    assert_int_equal(r.cell_count, 2);
    assert_int_equal(r.cells[0].slice, 0);
    assert_int_equal(r.cells[1].frees, 1);
    assert_int_equal(r.slices[1].live_bytes, 20);
    assert_int_equal(r.slices[2].live_max_bytes, 20);
    assert_int_equal(r.size_buckets[0].bytes, 30);
    assert_int_equal(r.lifetime_buckets[0].bucket, 1);
    assert_int_equal(r.cohorts[0].freed_slice, REC_NONE);
    assert_int_equal(r.cohorts[0].bytes, 20);
}

static void lines_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "main;foo",       "main;foo 1",     "main;;foo 1 2",      "main 1 2 3 4 5 6 7 8 9 10",
        "@1 2 3",         "size 1 2 3",     "main 1 2\nsize 1",   "main 1 2\nsize 252 1 1",
        "main 1 2\n@1 x", "cohort 0 - 1 2", "main 1 2\ncohort 0", ";main 1 2",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct recording r = {0};
        struct err_info info = {0};
        enum err err = recording_from_text(bad[i], &r, &info);
        if (err != ERR_INVALID || strstr(info.text, "cannot read the line") == NULL) {
            fail_msg("\"%s\": %s \"%s\"", bad[i], err_name(err), info.text);
        }
    }
}

static void buckets_meet_without_gaps_and_hold_their_values(void **state)
{
    (void)state;
    for (uint32_t bucket = 0; bucket < REC_BUCKET_COUNT; bucket++) {
        uint64_t low = rec_bucket_low(bucket);
        uint64_t next = rec_bucket_low(bucket + 1);
        assert_true(low < next);
        assert_int_equal(rec_bucket_of(low), bucket);
        assert_int_equal(rec_bucket_of(bucket + 1 < REC_BUCKET_COUNT ? next - 1 : UINT64_MAX),
                         bucket);
        // Four buckets to an octave: from 8 on, a bucket is at most a quarter of its low end wide.
        if (low >= 8 && bucket + 1 < REC_BUCKET_COUNT) {
            assert_true(next - low <= low / 4);
        }
    }
    for (uint64_t value = 0; value < 1024; value++) {
        const uint32_t bucket = rec_bucket_of(value);
        assert_true(rec_bucket_low(bucket) <= value && value < rec_bucket_low(bucket + 1));
    }
    assert_int_equal(rec_bucket_of(8), 8);
    assert_int_equal(rec_bucket_of(9), 8);
    assert_int_equal(rec_bucket_of(10), 9);
    assert_int_equal(rec_bucket_of(16), 12);
    assert_true(rec_bucket_low(REC_BUCKET_COUNT) == UINT64_MAX);
    assert_true(rec_bucket_low(UINT32_MAX) == UINT64_MAX);
}

static void a_string_that_does_not_exist_is_empty(void **state)
{
    (void)state;
    struct recording zeroed = {0};
    assert_string_equal(rec_string_get(&zeroed, 0), "");
    assert_string_equal(rec_string_get(&zeroed, 7), "");
    recording_release(&zeroed);
    CLEANUP(recording_release) struct recording r = drawn("main 1 1\n");
    assert_string_equal(rec_string_get(&r, 0), "");
    assert_string_equal(rec_string_get(&r, r.strings.count), "");
    assert_string_equal(rec_string_get(&r, REC_NONE), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_that_begin_alike_share_their_nodes),
        cmocka_unit_test(frames_carry_modules_places_and_inlined_functions),
        cmocka_unit_test(processes_threads_and_details_belong_to_what_precedes_them),
        cmocka_unit_test(lines_that_cannot_be_read_are_named),
        cmocka_unit_test(buckets_meet_without_gaps_and_hold_their_values),
        cmocka_unit_test(a_string_that_does_not_exist_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
