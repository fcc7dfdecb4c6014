// SPDX-License-Identifier: MIT
// recording_verify and recording_check find each kind of contradiction, and none in a sound
// recording; recording_dump visits every chunk.
#include "recording/read/recording_verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "recording/read/recording_dump.h"
#include "recording/test_support/recording_check.h"
#include "recording/test_support/recording_random.h"
#include "recording/test_support/recording_text.h"
#include "recording/test_support/test_folder.h"
#include "recording/write/recording_writer.h"

static const char text[] = "process server\n"
                           "thread main\n"
                           "main;load 10 640 4 256 1 64 6 384\n"
                           "  @0 4 256\n"
                           "  @3 6 384 4 256 1\n"
                           "  size 14 10 640\n"
                           "  life 3 4 256\n"
                           "  cohort 0 3 4 256\n"
                           "  realloc 2 8192 4096 8192\n"
                           "thread worker\n"
                           "main;work 3 30 3 30 3 30\n"
                           "  @1 3 30 3 30 3\n"
                           "  size 8 2 20\n"
                           "  size 9 1 10\n"
                           "  realloc 1 4096 4096 8192\n"
                           "process child\n"
                           "main;load 1 8\n"
                           "  @1 1 8\n"
                           "  size 8 1 8\n";

static struct recording sound(void)
{
    struct recording r = {0};
    struct err_info info = {0};
    if (recording_from_text(text, &r, &info) != ERR_OK) {
        fail_msg("%s", info.text);
    }
    return r;
}

static void assert_no_findings(const struct recording *r)
{
    CLEANUP(recording_findings_release) struct recording_findings findings = {0};
    assert_int_equal(recording_check(r, &findings), ERR_OK);
    if (findings.items.len > 0) {
        fail_msg("%s", findings.items.items[0].text);
    }
    assert_int_equal(recording_findings_count(&findings), 0);
}

static void sound_recordings_have_no_findings(void **state)
{
    (void)state;
    CLEANUP(recording_release) struct recording r = sound();
    assert_no_findings(&r);
    for (uint64_t seed = 0; seed < 20; seed++) {
        CLEANUP(recording_release) struct recording random = {0};
        assert_int_equal(recording_random_realistic(seed, 50 * seed + 2, &random), ERR_OK);
        assert_no_findings(&random);
    }
}

static void break_process_circle(struct recording *r)
{
    r->processes[0].parent = 1;
    r->processes[1].parent = 0;
}

static void break_row_pair(struct recording *r)
{
    r->rows[1].thread = r->rows[0].thread;
    r->rows[1].node = r->rows[0].node;
}

#define BREAK(name, statement)                    \
    static void break_##name(struct recording *r) \
    {                                             \
        statement;                                \
    }
BREAK(process_parent, r->processes[1].parent = 7)
BREAK(thread_process, r->threads[0].process = 2)
BREAK(module_string, r->modules[0].path = 1000000)
BREAK(meta_string, r->meta.host = r->strings.count)
BREAK(frame_module, r->frames[0].module = 9)
BREAK(frame_symbols, r->frames[0].symbol_count = UINT32_MAX)
BREAK(node_frame, r->nodes[1].frame = REC_NONE)
BREAK(node_parent, r->nodes[1].parent = 2)
BREAK(root_parent, r->nodes[0].parent = 0)
BREAK(no_root, r->node_count = 0)
BREAK(row_thread, r->rows[0].thread = REC_NONE)
BREAK(row_node, r->rows[2].node = 4)
BREAK(row_frees, r->rows[0].frees = 11)
BREAK(row_freed_bytes, r->rows[0].freed_bytes = 641)
BREAK(row_temporary, r->rows[0].temporary = r->rows[0].allocations + 1)
BREAK(row_allocations, r->rows[1].allocations++)
BREAK(row_peak, r->rows[1].peak_bytes++)
BREAK(totals_bytes, r->totals.allocated_bytes--)
BREAK(totals_temporary, r->totals.temporary_bytes = 0)
BREAK(totals_peak_blocks, r->totals.peak_blocks = 7)
BREAK(cell_row, r->cells[3].row = 3)
BREAK(cell_slice, r->cells[1].slice = 4)
BREAK(cell_order, r->cells[1].slice = 0)
BREAK(cell_sum, r->cells[1].freed_bytes++)
BREAK(cells_of_a_row, r->cells[3].row = 1)
BREAK(slice_width, r->slice_ms = 0)
BREAK(slice_sum, r->slices[1].frees++)
BREAK(slice_live, r->slices[2].live_bytes++)
BREAK(slice_max, r->slices[0].live_max_bytes = 1)
BREAK(size_bucket, r->size_buckets[0].bucket = REC_BUCKET_COUNT)
BREAK(size_row, r->size_buckets[3].row = 3)
BREAK(size_order, r->size_buckets[2].bucket = 8)
BREAK(size_sum, r->size_buckets[2].count = 0)
BREAK(life_row, r->lifetime_buckets[0].row = 3)
BREAK(cohort_row, r->cohorts[0].row = 3)
BREAK(cohort_born, r->cohorts[0].born_slice = 4)
BREAK(cohort_freed, r->cohorts[0].freed_slice = 5)
BREAK(realloc_row, r->reallocs[1].row = 3)
BREAK(realloc_order, r->reallocs[1].row = 0)

static void freed_before_it_was_born(struct recording *r)
{
    r->cohorts[0].born_slice = 3;
    r->cohorts[0].freed_slice = 1;
}

static void each_contradiction_is_found_and_named(void **state)
{
    (void)state;
    static const struct {
        void (*break_it)(struct recording *r);
        enum recording_invariant invariant;
        const char *words;
    } cases[] = {
        {break_process_circle, INVARIANT_TREE, "own ancestor"},
        {break_process_parent, INVARIANT_INDEX, "processes[1]: there is no process 7"},
        {break_thread_process, INVARIANT_INDEX, "threads[0]: there is no process 2"},
        {break_module_string, INVARIANT_INDEX, "modules[0]: there is no string 1000000"},
        {break_meta_string, INVARIANT_INDEX, "meta[0]: there is no string"},
        {break_frame_module, INVARIANT_INDEX, "frames[0]: there is no module 9"},
        {break_frame_symbols, INVARIANT_INDEX, "frames[0]: there is no symbol"},
        {break_node_frame, INVARIANT_INDEX, "nodes[1]: there is no frame"},
        {break_node_parent, INVARIANT_TREE, "nodes[1] comes before its parent 2"},
        {break_root_parent, INVARIANT_TREE, "node 0 is not the root"},
        {break_no_root, INVARIANT_TREE, "node 0 is not the root"},
        {break_row_thread, INVARIANT_INDEX, "rows[0]: there is no thread"},
        {break_row_node, INVARIANT_INDEX, "rows[2]: there is no node 4"},
        {break_row_frees, INVARIANT_COST, "rows[0] freed 11 blocks of 10"},
        {break_row_freed_bytes, INVARIANT_COST, "641 bytes of 640"},
        {break_row_temporary, INVARIANT_COST, "rows[0] has more temporary"},
        {break_row_allocations, INVARIANT_SUM, "allocations of all rows is 15"},
        {break_row_pair, INVARIANT_UNIQUE, "two rows for node 2"},
        {break_row_peak, INVARIANT_SUM, "at the peak is 385, but the peak is 384"},
        {break_totals_bytes, INVARIANT_SUM, "allocated bytes of all rows is 678"},
        {break_totals_temporary, INVARIANT_SUM, "temporary bytes of all rows is 94"},
        {break_totals_peak_blocks, INVARIANT_SUM, "blocks of all rows at the peak is 6"},
        {break_cell_row, INVARIANT_INDEX, "cells[3]: there is no row 3"},
        {break_cell_slice, INVARIANT_INDEX, "cells[1]: there is no slice 4"},
        {break_cell_order, INVARIANT_ORDER, "cells[1] is out of order"},
        {break_cell_sum, INVARIANT_SUM, "rows[0] has 256 freed bytes, its cells have 257"},
        {break_cells_of_a_row, INVARIANT_ORDER, "cells[3] is out of order"},
        {break_slice_width, INVARIANT_COST, "no width"},
        {break_slice_sum, INVARIANT_SUM, "frees of all slices is 8"},
        {break_slice_live, INVARIANT_SUM, "slices[2] ends with 265"},
        {break_slice_max, INVARIANT_COST, "slices[0] ends above its own maximum"},
        {break_size_bucket, INVARIANT_INDEX, "size_buckets[0]: there is no bucket 252"},
        {break_size_row, INVARIANT_INDEX, "size_buckets[3]: there is no row 3"},
        {break_size_order, INVARIANT_ORDER, "size_buckets[2] is out of order"},
        {break_size_sum, INVARIANT_SUM, "rows[1] has 3 allocations, its size buckets have 2"},
        {break_life_row, INVARIANT_INDEX, "lifetime_buckets[0]: there is no row 3"},
        {break_cohort_row, INVARIANT_INDEX, "cohorts[0]: there is no row 3"},
        {break_cohort_born, INVARIANT_INDEX, "cohorts[0]: there is no slice 4"},
        {break_cohort_freed, INVARIANT_INDEX, "cohorts[0]: there is no slice 5"},
        {break_realloc_row, INVARIANT_INDEX, "reallocs[1]: there is no row 3"},
        {break_realloc_order, INVARIANT_ORDER, "reallocs[1] is out of order"},
        {freed_before_it_was_born, INVARIANT_COST, "cohorts[0] was freed before"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(recording_release) struct recording r = sound();
        CLEANUP(recording_findings_release) struct recording_findings findings = {0};
        cases[i].break_it(&r);
        assert_int_equal(recording_check(&r, &findings), ERR_OK);
        bool is_found = false;
        for (size_t j = 0; j < findings.items.len; j++) {
            is_found = is_found || strstr(findings.items.items[j].text, cases[i].words) != NULL;
        }
        if (!is_found || findings.counts[cases[i].invariant] == 0) {
            fail_msg("\"%s\" was not found; the first of %llu is \"%s\"", cases[i].words,
                     (unsigned long long)recording_findings_count(&findings),
                     findings.items.len > 0 ? findings.items.items[0].text : "");
        }
    }
}

// A recording whose tables have one entry each: one thread's stack in one slice.
static struct recording smallest(void)
{
    struct recording r = {0};
    struct err_info info = {0};
    if (recording_from_text("main 3 24 1 8 1 8 2 16\n@0 3 24 1 8 1\nsize 8 3 24\n", &r, &info) !=
        ERR_OK) {
        fail_msg("%s", info.text);
    }
    return r;
}

static void each_sum_of_one_entry_is_checked(void **state)
{
    (void)state;
#define CASE(table, field, words)                                                  \
    {                                                                              \
        offsetof(struct recording, table),                                         \
            offsetof(__typeof__(*((struct recording *)NULL)->table), field), words \
    }
    static const struct {
        size_t table; // where the recording has it
        size_t field; // a number of 64 bits, which becomes one too large
        const char *words;
    } cases[] = {
        CASE(cells, allocations, "rows[0] has 3 allocations, its cells have 4"),
        CASE(cells, allocated_bytes, "rows[0] has 24 allocated bytes, its cells have 25"),
        CASE(cells, frees, "rows[0] has 1 frees, its cells have 2"),
        CASE(cells, freed_bytes, "rows[0] has 8 freed bytes, its cells have 9"),
        CASE(cells, temporary, "rows[0] has 1 temporary allocations, its cells have 2"),
        CASE(size_buckets, count, "rows[0] has 3 allocations, its size buckets have 4"),
        CASE(size_buckets, bytes, "rows[0] has 24 allocated bytes, its size buckets have 25"),
        CASE(slices, allocations, "allocations of all slices is 4, but the total is 3"),
        CASE(slices, allocated_bytes, "allocated bytes of all slices is 25, but the total is 24"),
        CASE(slices, frees, "frees of all slices is 2, but the total is 1"),
        CASE(slices, freed_bytes, "freed bytes of all slices is 9, but the total is 8"),
        CASE(slices, temporary, "temporary allocations of all slices is 2, but the total is 1"),
        CASE(slices, live_bytes, "slices[0] ends with 17 live bytes, but the slices add up to 16"),
        CASE(rows, allocations, "allocations of all rows is 4, but the total is 3"),
        CASE(rows, allocated_bytes, "allocated bytes of all rows is 25, but the total is 24"),
        CASE(rows, frees, "frees of all rows is 2, but the total is 1"),
        CASE(rows, freed_bytes, "freed bytes of all rows is 9, but the total is 8"),
        CASE(rows, temporary, "temporary allocations of all rows is 2, but the total is 1"),
        CASE(rows, temporary_bytes, "temporary bytes of all rows is 9, but the total is 8"),
        CASE(rows, peak_bytes, "bytes of all rows at the peak is 17, but the peak is 16"),
        CASE(rows, peak_blocks, "blocks of all rows at the peak is 3, but the total is 2"),
    };
#undef CASE
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(recording_release) struct recording r = smallest();
        CLEANUP(recording_findings_release) struct recording_findings findings = {0};
        uint8_t *entry = *(uint8_t **)(void *)((uint8_t *)&r + cases[i].table);
        assert_no_findings(&r);
        *(uint64_t *)(void *)(entry + cases[i].field) += 1;
        assert_int_equal(recording_check(&r, &findings), ERR_OK);
        bool is_found = false;
        for (size_t j = 0; j < findings.items.len; j++) {
            is_found = is_found || strstr(findings.items.items[j].text, cases[i].words) != NULL;
        }
        if (!is_found) {
            fail_msg("\"%s\" was not found; the first of %zu is \"%s\"", cases[i].words,
                     findings.items.len,
                     findings.items.len > 0 ? findings.items.items[0].text : "");
        }
    }
}

static void listed_blocks_are_checked(void **state)
{
    (void)state;
    enum {
        BLOCKS = 3
    };
    static const struct {
        struct rec_block blocks[BLOCKS];
        size_t count;
        const char *words; // NULL: sound
    } cases[] = {
        {{{.flags = REC_BLOCK_END, .born_ms = 5}}, 1, NULL},
        {{{.flags = REC_BLOCK_END, .freed_ms = 5}}, 1, "blocks[0] contradicts itself"},
        {{{.flags = REC_BLOCK_PEAK, .born_ms = 5, .freed_ms = 5}}, 1, NULL},
        {{{.flags = REC_BLOCK_PEAK, .born_ms = 5, .freed_ms = 4}},
         1,
         "blocks[0] contradicts itself"},
        {{{.flags = REC_BLOCK_END}, {.flags = REC_BLOCK_END}}, 2, NULL},
        {{{.flags = REC_BLOCK_END}, {.flags = REC_BLOCK_END}, {.flags = REC_BLOCK_END}},
         3,
         "rows[0] lists more blocks than it has"},
        {{{.flags = REC_BLOCK_PEAK}, {.flags = REC_BLOCK_PEAK}}, 2, NULL},
        {{{.flags = REC_BLOCK_PEAK}, {.flags = REC_BLOCK_PEAK}, {.flags = REC_BLOCK_PEAK}},
         3,
         "rows[0] lists more blocks than it has"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(recording_release) struct recording r = smallest();
        CLEANUP(recording_findings_release) struct recording_findings findings = {0};
        struct rec_block blocks[BLOCKS];
        memcpy(blocks, cases[i].blocks, sizeof(blocks));
        r.blocks = blocks;
        r.block_count = cases[i].count;
        assert_int_equal(recording_verify(&r, &findings), ERR_OK);
        r.blocks = NULL;
        r.block_count = 0;
        const char *first = findings.items.len > 0 ? findings.items.items[0].text : "none";
        assert_string_equal(first, cases[i].words != NULL ? cases[i].words : "none");
    }
}

static void the_kinds_of_a_snapshot_are_its_whole_and_the_parts_its_kinds(void **state)
{
    (void)state;
#define KIND(field, kind)                                 \
    {                                                     \
        offsetof(struct rec_memory_snapshot, field), kind \
    }
    static const struct {
        size_t field;
        uint32_t kind;
    } kinds[] = {
        KIND(live_bytes, REC_PART_LIVE),     KIND(rounding_bytes, REC_PART_ROUNDING),
        KIND(kept_bytes, REC_PART_KEPT),     KIND(mapped_bytes, REC_PART_MAPPED),
        KIND(stack_bytes, REC_PART_STACK),   KIND(file_bytes, REC_PART_FILE),
        KIND(shared_bytes, REC_PART_SHARED), KIND(own_bytes, REC_PART_OWN),
        KIND(rest_bytes, REC_PART_REST),
    };
#undef KIND
    // What is wrong: nothing, the whole, a part of the first snapshot, or one of the second.
    static const char *const findings_of[] = {
        NULL, "the kinds of a memory snapshot is 64, but its whole is 65",
        "the parts of one kind of a memory snapshot is 65, but the snapshot is 64",
        "the parts of one kind of a memory snapshot is 63, but the snapshot is 64"};
    for (size_t i = 0; i < ARRAY_LEN(kinds) * ARRAY_LEN(findings_of); i++) {
        const size_t kind = i / ARRAY_LEN(findings_of);
        const size_t fault = i % ARRAY_LEN(findings_of);
        CLEANUP(recording_release) struct recording r = smallest();
        CLEANUP(recording_findings_release) struct recording_findings findings = {0};
        struct rec_memory_snapshot snapshots[2] = {{.rss_bytes = 64 + (fault == 1)},
                                                   {.rss_bytes = 64}};
        for (size_t k = 0; k < ARRAY_LEN(snapshots); k++) {
            *(uint64_t *)(void *)((char *)(snapshots + k) + kinds[kind].field) = 64;
        }
        struct rec_part parts[] = {
            {.snapshot = 0, .kind = kinds[kind].kind, .rss_bytes = 60 + (fault == 2)},
            {.snapshot = 0, .kind = kinds[kind].kind, .rss_bytes = 4},
            {.snapshot = 1, .kind = kinds[kind].kind, .rss_bytes = 64 - (fault == 3)}};
        r.memory_snapshots = snapshots;
        r.memory_snapshot_count = ARRAY_LEN(snapshots);
        r.parts = parts;
        r.part_count = ARRAY_LEN(parts);
        assert_int_equal(recording_verify(&r, &findings), ERR_OK);
        r.memory_snapshots = NULL;
        r.memory_snapshot_count = 0;
        r.parts = NULL;
        r.part_count = 0;
        const char *first = findings.items.len > 0 ? findings.items.items[0].text : "none";
        assert_string_equal(first, findings_of[fault] != NULL ? findings_of[fault] : "none");
        assert_int_equal(findings.items.len, fault != 0);
    }
}

static void nothing_is_read_out_of_bounds_whatever_is_verified(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        CLEANUP(recording_release) struct recording wild = {0};
        CLEANUP(recording_findings_release) struct recording_findings findings = {0};
        assert_int_equal(recording_random_wild(seed, 60, &wild), ERR_OK);
        assert_int_equal(recording_check(&wild, &findings), ERR_OK);
        assert_true(findings.items.len <= 85); // five of each check
        assert_true(recording_findings_count(&findings) >= findings.items.len);
    }
    struct recording zeroed = {0};
    CLEANUP(recording_findings_release) struct recording_findings findings = {0};
    assert_int_equal(recording_check(&zeroed, &findings), ERR_OK);
    assert_int_equal(findings.counts[INVARIANT_TREE], 1); // no root
}

struct seen {
    char types[512];
    unsigned damaged;
    unsigned stop_after; // number of chunks
};

static bool see(void *context, const struct dumped_chunk *chunk)
{
    struct seen *seen = context;
    size_t len = strlen(seen->types);
    (void)snprintf(seen->types + len, sizeof(seen->types) - len, "%s%s ", chunk->type,
                   chunk->condition != ERR_OK ? "!" : "");
    if (chunk->condition != ERR_OK) {
        assert_true(strlen(chunk->problem) > 0);
        seen->damaged++;
    } else if (strcmp(chunk->type, "ROWS") == 0) {
        assert_string_equal(chunk->table, "rows");
        assert_int_equal(chunk->count, chunk->first == 0 ? 2 : 1);
    }
    return seen->stop_after == 0 || --seen->stop_after > 0;
}

static void the_dump_shows_every_chunk_and_its_damage(void **state)
{
    CLEANUP(recording_release) struct recording r = sound();
    CLEANUP(strbuf_release) struct strbuf file = {0};
    struct err_info info = {0};
    struct dump_summary summary = {0};
    struct seen seen = {0};
    const char *path = test_path(*state, "dump.cairn");
    assert_int_equal(
        recording_write(&r, path, &(struct recording_write_options){.group_count = 2}, &info),
        ERR_OK);
    assert_int_equal(recording_dump(path, see, &seen, &summary, &info), ERR_OK);
    assert_string_equal(seen.types, "SBEG META TOTL STRS STRS STRS STRS STRS PROC THRD THRD MODS "
                                    "SLIC SLIC FRAM FRAM NODE NODE ROWS ROWS SYMB SYMB COHO "
                                    "CELL CELL SIZB SIZB LIFB RALC SEND ");
    assert_true(summary.has_contents);
    assert_true(summary.has_footer);
    assert_int_equal(summary.damaged_chunks, 0);
    assert_int_equal(summary.unreadable_bytes, 0);
    assert_int_equal(summary.chunk_count, 30);
    // The visitor stops the dump.
    seen = (struct seen){.stop_after = 2};
    assert_int_equal(recording_dump(path, see, &seen, &summary, &info), ERR_CANCELLED);
    assert_string_equal(seen.types, "SBEG META ");
    // Damage to a payload and, further on, to a head.
    assert_int_equal(file_read(path, SIZE_MAX, &file, &info), ERR_OK);
    file.data[FILE_HEADER_BYTES + CHUNK_HEAD_BYTES + 3] ^= 1;
    char *rows = memmem(file.data, file.len, "ROWS", 4);
    assert_non_null(rows);
    char *first_rows = memmem(rows + 4, file.len - (size_t)(rows + 4 - file.data), "ROWS", 4);
    assert_non_null(first_rows);
    first_rows[9] ^= 1;
    assert_int_equal(file_replace(path, strbuf_bytes(&file), &info), ERR_OK);
    seen = (struct seen){0};
    assert_int_equal(recording_dump(path, see, &seen, &summary, &info), ERR_OK);
    assert_int_equal(seen.damaged, 1);
    assert_int_equal(summary.damaged_chunks, 1);
    assert_true(summary.unreadable_bytes > CHUNK_HEAD_BYTES);
    assert_false(summary.has_contents);
    assert_int_equal(summary.chunk_count, 29);
    // A file that is not a recording is refused as by recording_open.
    assert_int_equal(recording_dump("/dev/null", see, &seen, &summary, &info), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_recordings_have_no_findings),
        cmocka_unit_test(each_contradiction_is_found_and_named),
        cmocka_unit_test(each_sum_of_one_entry_is_checked),
        cmocka_unit_test(listed_blocks_are_checked),
        cmocka_unit_test(the_kinds_of_a_snapshot_are_its_whole_and_the_parts_its_kinds),
        cmocka_unit_test(nothing_is_read_out_of_bounds_whatever_is_verified),
        TEST_IN_FOLDER(the_dump_shows_every_chunk_and_its_damage),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
