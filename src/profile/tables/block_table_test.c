// SPDX-License-Identifier: MIT
// Tests of block_table: which blocks are listed, in which order, and how old they are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/tables/block_table.h"
#include "profile/test_support/drawn_profile.h"
#include "recording/write/recording_builder.h"

enum {
    PEAK_MS = 500,
    END_MS = 900,
    BOTH = REC_BLOCK_PEAK | REC_BLOCK_END,
};

struct listed {
    struct rec_block block;
    uint64_t peak_age_ms;
    uint64_t end_age_ms;
};

// By row. A block that is born after the peak is 0 ms old there.
static const struct listed blocks[] = {
    {{.address = 0x50, .size_bytes = 8, .born_ms = 0, .row = 0, .flags = BOTH}, 500, 900},
    {{.address = 0x20, .size_bytes = 8, .born_ms = 499, .row = 0, .flags = BOTH}, 1, 401},
    {{.address = 0x90, .size_bytes = 64, .born_ms = 500, .row = 1, .flags = BOTH}, 0, 400},
    {{.address = 0x10, .size_bytes = 32, .born_ms = 899, .row = 1, .flags = REC_BLOCK_END}, 0, 1},
    {{.address = 0x80, .size_bytes = 9000, .born_ms = 900, .row = 1, .flags = REC_BLOCK_END}, 0, 0},
    {{.address = 0x30,
      .size_bytes = 16,
      .born_ms = 7,
      .freed_ms = 600,
      .row = 1,
      .flags = REC_BLOCK_PEAK},
     493,
     893},
};

// Borrow the blocks for `drawn`, whose other tables are those of the text.
static void open_blocks(struct drawn_profile *drawn, struct rec_block *storage)
{
    char text[300];
    (void)snprintf(
        text, sizeof(text),
        "main;load 2 16 0 0 0 0\nsize %u 2 16\n"
        "main;parse 4 9112 1 16 0 0\nsize %u 1 16\nsize %u 1 32\nsize %u 1 64\nsize %u 1 9000\n",
        rec_bucket_of(8), rec_bucket_of(16), rec_bucket_of(32), rec_bucket_of(64),
        rec_bucket_of(9000));
    drawn_profile_open(text, drawn);
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        storage[i] = blocks[i].block;
    }
    struct recording *recording = &drawn->profile->recording;
    recording->blocks = storage;
    recording->block_count = ARRAY_LEN(blocks);
    recording->totals.peak_time_ms = PEAK_MS;
    recording->processes[0].end_ms = END_MS;
}

static void blocks_are_listed_by_size_and_address(void **state)
{
    (void)state;
    const struct {
        uint32_t flag;
        struct filter filter;
        const char *wanted; // addresses
        uint64_t bytes;
    } cases[] = {
        {REC_BLOCK_END, {0}, "80 90 10 20 50 ", 9112},
        {REC_BLOCK_PEAK, {0}, "90 30 20 50 ", 96},
        {REC_BLOCK_END, {.function_text = "load"}, "20 50 ", 16},
        {REC_BLOCK_END, {.function_text = "parse"}, "80 90 10 ", 9096},
        {REC_BLOCK_PEAK, {.function_text = "parse"}, "90 30 ", 80},
        {REC_BLOCK_PEAK, {.has_sizes = true, .sizes = bucket_range_covering(16, 50)}, "30 ", 16},
        {REC_BLOCK_END, {.has_sizes = true, .sizes = bucket_range_covering(1, 2)}, "", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(selection_release) struct selection selection = {0};
        CLEANUP(block_table_release) struct block_table table = {0};
        struct rec_block storage[ARRAY_LEN(blocks)];
        open_blocks(&drawn, storage);
        assert_int_equal(profile_select(drawn.profile, &cases[i].filter, &selection, NULL), ERR_OK);
        assert_int_equal(
            block_table_build(&selection, &cases[i].filter, cases[i].flag, &table, NULL), ERR_OK);
        char got[100] = "";
        for (size_t k = 0, at = 0; k < table.blocks.len; k++) {
            at += (size_t)snprintf(got + at, sizeof(got) - at, "%lx ",
                                   storage[table.blocks.items[k]].address);
        }
        print_message("case %zu\n", i);
        assert_string_equal(got, cases[i].wanted);
        assert_int_equal(table.bytes, cases[i].bytes);
    }
}

static void blocks_cannot_be_picked_by_time(void **state)
{
    (void)state;
    static const struct filter filters[] = {{.has_range = true}, {.has_lifetimes = true}};
    for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        struct block_table table = {0};
        struct err_info info = {0};
        drawn_profile_open("main 1 8\n", &drawn);
        assert_int_equal(
            block_table_build(&drawn.selection, &filters[i], REC_BLOCK_END, &table, &info),
            ERR_UNSUPPORTED);
        assert_string_equal(info.text,
                            "single blocks cannot be picked by a range of time or of lifetimes");
    }
}

static void the_age_ends_with_the_process_or_at_the_peak(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    struct rec_block storage[ARRAY_LEN(blocks)];
    open_blocks(&drawn, storage);
    for (uint32_t i = 0; i < ARRAY_LEN(blocks); i++) {
        print_message("block %u\n", i);
        assert_int_equal(block_age_ms(drawn.profile, i, REC_BLOCK_PEAK), blocks[i].peak_age_ms);
        assert_int_equal(block_age_ms(drawn.profile, i, REC_BLOCK_END), blocks[i].end_age_ms);
    }
}

// A recording without blocks was made with --blocks if it says how many it left out.
static void a_counter_tells_that_blocks_were_recorded(void **state)
{
    (void)state;
    static const struct {
        const char *counter;
        bool wanted;
    } cases[] = {{"blocks_left_out", true}, {"blocks_left", false}, {NULL, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(recording_builder_release) struct recording_builder b = {0};
        CLEANUP(recording_release) struct recording recording = {0};
        CLEANUP(profile_closep) struct profile *profile = NULL;
        assert_int_equal(recording_builder_init(&b), ERR_OK);
        if (cases[i].counter != NULL) {
            struct rec_counter counter = {.kind = REC_COUNTER_NOTE};
            assert_int_equal(recording_builder_string(&b, cases[i].counter, &counter.name), ERR_OK);
            assert_int_equal(counters_vec_push(&b.counters, counter), ERR_OK);
        }
        assert_int_equal(recording_builder_finish(&b, &recording), ERR_OK);
        assert_int_equal(profile_from_recording(&recording, NULL, NULL, &profile, NULL), ERR_OK);
        assert_int_equal(block_table_is_recorded(profile), cases[i].wanted);
    }
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    struct rec_block storage[ARRAY_LEN(blocks)];
    open_blocks(&drawn, storage);
    assert_true(block_table_is_recorded(drawn.profile));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_listed_by_size_and_address),
        cmocka_unit_test(blocks_cannot_be_picked_by_time),
        cmocka_unit_test(the_age_ends_with_the_process_or_at_the_peak),
        cmocka_unit_test(a_counter_tells_that_blocks_were_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
