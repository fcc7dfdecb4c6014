// SPDX-License-Identifier: MIT
// Truncated, changed, invented and foreign files: the reader shows the undamaged part, or refuses
// with the reason.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/by_night.h"
#include "base/test_support/open_files.h"

#include <zstd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "recording/format/column.h"
#include "recording/format/schema.h"
#include "recording/read/recording_reader.h"
#include "recording/test_support/recording_bytes.h"
#include "recording/test_support/recording_check.h"
#include "recording/test_support/recording_random.h"
#include "recording/test_support/recording_text.h"
#include "recording/test_support/test_folder.h"
#include "recording/test_support/test_recording.h"
#include "recording/write/recording_writer.h"

// Return the bytes of a file with `recording`.
static void written(const struct recording *recording,
                    const struct recording_write_options *options,
                    void *state,
                    struct strbuf *out)
{
    struct err_info info = {0};
    const char *path = test_path(state, "written.cairn");
    must(recording_write(recording, path, options, &info), &info);
    must(file_read(path, SIZE_MAX, out, &info), &info);
}

static void small_file(void *state, uint32_t group_count, struct strbuf *out)
{
    struct err_info info = {0};
    CLEANUP(recording_release) struct recording small = {0};
    must(recording_from_text(test_recording_text, &small, &info), &info);
    small.meta.state = REC_STATE_FINISHED;
    written(&small, &(struct recording_write_options){.group_count = group_count}, state, out);
}

static enum err open_bytes(const struct strbuf *file,
                           size_t len,
                           struct recording *out,
                           struct recording_open_result *result)
{
    // A copy of exactly that length, so that a sanitizer detects a read past its end.
    uint8_t *copy = malloc(len + (len == 0));
    assert_non_null(copy);
    memcpy(copy, file->data, len);
    struct err_info info = {0};
    struct recording_limits limits = recording_default_limits;
    limits.most_bytes = (uint64_t)1 << 30; // whatever memory this machine has
    enum err err = recording_open_bytes((struct bytes){.data = copy, .len = len}, "test", &limits,
                                        out, result, &info);
    free(copy);
    if (err != ERR_OK) {
        assert_true(strlen(info.text) > 10); // a sentence
    }
    return err;
}

// Check that any result can be walked.
static void assert_walkable(const struct recording *r)
{
    CLEANUP(recording_findings_release) struct recording_findings findings = {0};
    assert_int_equal(recording_check(r, &findings), ERR_OK);
    for (size_t i = 0; i < findings.items.len; i++) {
        enum recording_invariant broken = findings.items.items[i].invariant;
        if (broken == INVARIANT_INDEX || broken == INVARIANT_TREE || broken == INVARIANT_ORDER) {
            fail_msg("%s", findings.items.items[i].text);
        }
    }
}

static uint64_t entry_count(const struct recording *r)
{
    uint64_t count = r->strings.count;
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        count += rec_tables[i].columns != NULL ? rec_table_count(&rec_tables[i], r) : 0;
    }
    return count;
}

static void a_file_cut_at_any_byte_opens_up_to_there(void **state)
{
    CLEANUP(strbuf_release) struct strbuf file = {0};
    CLEANUP(recording_release) struct recording whole = {0};
    small_file(*state, 1, &file);
    assert_int_equal(open_bytes(&file, file.len, &whole, NULL), ERR_OK);
    uint64_t entries_before = 0;
    size_t opened_count = 0;
    for (size_t len = 0; len < file.len; len++) {
        CLEANUP(recording_release) struct recording r = {0};
        struct recording_open_result result = {0};
        enum err err = open_bytes(&file, len, &r, &result);
        if (err != ERR_OK) {
            assert_int_equal(err, ERR_TRUNCATED);
            assert_int_equal(entries_before, 0); // a longer piece never shows less
            continue;
        }
        opened_count++;
        assert_int_equal(result.condition, RECORDING_TRUNCATED);
        assert_true(strlen(result.missing) > 0);
        assert_true(entry_count(&r) >= entries_before);
        entries_before = entry_count(&r);
        assert_walkable(&r);
        // The entries present are the first of those written.
        assert_memory_equal(&r.totals, &whole.totals, sizeof(r.totals));
        assert_true(r.row_count <= whole.row_count);
        if (r.row_count > 0) {
            assert_memory_equal(r.rows, whole.rows, r.row_count * sizeof(*r.rows));
        }
        if (r.node_count > 1) {
            assert_memory_equal(r.nodes, whole.nodes, r.node_count * sizeof(*r.nodes));
        }
        if (r.cell_count > 0) {
            assert_memory_equal(r.cells, whole.cells, r.cell_count * sizeof(*r.cells));
        }
        for (uint32_t id = 0; id < r.strings.count; id++) {
            assert_string_equal(rec_string_get(&r, id), rec_string_get(&whole, id));
        }
        assert_int_equal(result.file_bytes, len);
        assert_null(strstr(result.missing, "damaged"));
    }
    assert_true(opened_count > file.len / 2);
    assert_int_equal(entries_before, entry_count(&whole)); // a lost footer loses no entries
}

static void every_flipped_bit_is_harmless_or_reported(void **state)
{
    CLEANUP(strbuf_release) struct strbuf file = {0};
    CLEANUP(recording_release) struct recording whole = {0};
    struct recording_limits walk = recording_default_limits;
    walk.ignores_contents = true;
    small_file(*state, 2, &file);
    assert_int_equal(open_bytes(&file, file.len, &whole, NULL), ERR_OK);
    size_t refused = 0;
    // Five and eight have no common divisor: in five bytes each bit of a byte is flipped.
    for (size_t bit = 0; bit < file.len * 8; bit += step_by_day(37)) {
        file.data[bit / 8] = (char)(file.data[bit / 8] ^ 1 << bit % 8);
        bool is_noticed = false;
        for (int walks = 0; walks < 2; walks++) {
            CLEANUP(recording_release) struct recording r = {0};
            struct recording_open_result result = {0};
            struct err_info info = {0};
            enum err err = recording_open_bytes(strbuf_bytes(&file), "test", walks ? &walk : NULL,
                                                &r, &result, &info);
            size_t entry = 0;
            if (err != ERR_OK) {
                refused++;
                assert_true(bit < 64); // only the magic number is indispensable
                is_noticed = true;
                continue;
            }
            is_noticed = is_noticed || result.condition != RECORDING_COMPLETE;
            assert_true((strlen(result.missing) > 0) == (result.condition != RECORDING_COMPLETE));
            if (recording_difference(&whole, &r, &entry) != NULL) {
                assert_int_equal(result.condition, RECORDING_DAMAGED);
                assert_walkable(&r);
            }
        }
        // The table of contents replaces damaged heads; the walk works without the table.
        assert_true(is_noticed);
        file.data[bit / 8] = (char)(file.data[bit / 8] ^ 1 << bit % 8);
    }
    assert_int_equal(refused, 2 * ((64 + step_by_day(37) - 1) / step_by_day(37)));
}

static void random_damage_to_a_large_file_is_survived(void **state)
{
    CLEANUP(strbuf_release) struct strbuf file = {0};
    CLEANUP(recording_release) struct recording large = {0};
    struct random_source random = {.state = 5};
    assert_int_equal(recording_random_realistic(3, 5000, &large), ERR_OK);
    written(&large, &(struct recording_write_options){.group_count = 500}, *state, &file);
    for (size_t round = 0; round < 600; round++) {
        CLEANUP(strbuf_release) struct strbuf bad = {0};
        CLEANUP(recording_release) struct recording r = {0};
        struct recording_open_result result = {0};
        size_t len = round % 3 == 0 ? random_below(&random, file.len) : file.len;
        size_t flips = round % 3 == 0 ? 0 : 1 + random_below(&random, 20);
        strbuf_append(&bad, file.data, len);
        for (size_t i = 0; i < flips; i++) {
            size_t at = 8 + random_below(&random, len - 8);
            bad.data[at] = (char)(bad.data[at] ^ (1 + (int)random_below(&random, 255)));
        }
        if (round % 3 == 2) { // and a piece in the middle is missing
            size_t at = 24 + random_below(&random, len - 24);
            size_t piece = random_below(&random, 2000);
            piece = piece > len - at ? len - at : piece;
            memmove(bad.data + at, bad.data + at + piece, len - at - piece);
            bad.len -= piece;
        }
        enum err err = open_bytes(&bad, bad.len, &r, &result);
        if (err == ERR_OK) {
            assert_walkable(&r);
        } else {
            assert_true(err == ERR_TRUNCATED || err == ERR_CORRUPT);
        }
    }
}

static void an_older_whole_snapshot_is_better_than_a_newer_broken_one(void **state)
{
    const char *path = test_path(*state, "two.cairn");
    CLEANUP(recording_writer_release) struct recording_writer w = {0};
    CLEANUP(recording_release) struct recording first = {0};
    CLEANUP(recording_release) struct recording second = {0};
    CLEANUP(strbuf_release) struct strbuf file = {0};
    struct err_info info = {0};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(recording_random_realistic(1, 200, &first), ERR_OK);
    assert_int_equal(recording_random_realistic(2, 250, &second), ERR_OK);
    first.meta.state = REC_STATE_RUNNING;
    must(recording_writer_init(&w, fd, path, NULL, &info), &info);
    must(recording_writer_snapshot(&w, &first, &info), &info);
    size_t first_end = (size_t)w.end;
    must(recording_writer_snapshot(&w, &second, &info), &info);
    size_t second_end = (size_t)w.end;
    must(recording_writer_finish(&w, &info), &info);
    assert_int_equal(close(fd), 0);
    must(file_read(path, SIZE_MAX, &file, &info), &info);
    for (size_t len = first_end; len < file.len; len += 7) {
        CLEANUP(recording_release) struct recording r = {0};
        struct recording_open_result result = {0};
        size_t entry = 0;
        assert_int_equal(open_bytes(&file, len, &r, &result), ERR_OK);
        bool is_second = len >= second_end;
        assert_int_equal(result.generation, is_second ? 2 : 1);
        assert_null(recording_difference(is_second ? &second : &first, &r, &entry));
        assert_int_equal(result.condition, is_second ? RECORDING_TRUNCATED : RECORDING_GROWING);
        assert_true(len == first_end || strlen(result.missing) > 0);
    }
    // Damage in the middle of the second snapshot, longer than a head, which the table of contents
    // would replace: the first snapshot is undamaged.
    CLEANUP(recording_release) struct recording r = {0};
    struct recording_open_result result = {0};
    size_t entry = 0;
    memset(file.data + (first_end + second_end) / 2, 0x55, CHUNK_HEAD_BYTES + 1);
    assert_int_equal(open_bytes(&file, file.len, &r, &result), ERR_OK);
    assert_int_equal(result.generation, 1);
    assert_int_equal(result.condition, RECORDING_DAMAGED);
    assert_null(recording_difference(&first, &r, &entry));
}

static void what_is_no_recording_is_named(void **state)
{
    static const struct {
        const char *name;
        const char *bytes;
        size_t len;
        enum err err;
        const char *words;
    } cases[] = {
        {"empty", "", 0, ERR_TRUNCATED, "is empty"},
        {"text", "hello, world, this is text\n", 27, ERR_INVALID, "is not a recording"},
        {"one byte", "x", 1, ERR_INVALID, "is not a recording"},
        {"only magic", "\213cairn\r\n", 8, ERR_TRUNCATED, "ends within its header"},
        {"half magic", "\213ca", 3, ERR_TRUNCATED, "ends within its header"},
        {"unix line ends", "\213cairn\n\1..............", 23, ERR_INVALID, "as if it were text"},
        {"dos line ends", "\213cairn\r\r\n\1............", 23, ERR_INVALID, "as if it were text"},
        {"seven bits", "\013cairn\r\n\1..............", 24, ERR_INVALID, "as if it were text"},
        {"utf-8", "\302\213cairn\r\n\1.............", 24, ERR_INVALID, "as if it were text"},
        {"gzip", "\37\213broken", 8, ERR_INVALID, "compressed"},
        {"zstd", "\50\265\57\375broken", 10, ERR_INVALID, "compressed"},
        {"poem", "v what is this, a poem?\n\n\n\n", 26, ERR_INVALID, "is not a recording"},
        {"elf", "\177ELF\2\1\1..................", 24, ERR_INVALID, "a program or a library"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct recording r = {0};
        struct err_info info = {0};
        const char *path = test_path(*state, "foreign");
        struct bytes bytes = {.data = (const uint8_t *)cases[i].bytes, .len = cases[i].len};
        must(file_replace(path, bytes, &info), &info);
        enum err err = recording_open(path, &r, NULL, &info);
        if (err != cases[i].err || strstr(info.text, cases[i].words) == NULL) {
            fail_msg("%s: %s \"%s\"", cases[i].name, err_name(err), info.text);
        }
    }
}

// Run a shell command in the test's folder.
static void shell(void *state, const char *command)
{
    char line[512];
    struct test_folder *folder = state;
    (void)snprintf(line, sizeof(line), "cd '%s' && %s", folder->path, command);
    FILE *pipe = popen(line, "r"); // NOLINT: a fixed command of the test
    assert_non_null(pipe);
    assert_int_equal(pclose(pipe), 0);
}

static void what_is_no_file_is_refused(void **state)
{
    struct test_folder *folder = *state;
    struct recording r = {0};
    struct err_info info = {0};
    assert_int_equal(recording_open(folder->path, &r, NULL, &info), ERR_INVALID);
    assert_non_null(strstr(info.text, "is a directory"));
    assert_int_equal(recording_open(test_path(*state, "none"), &r, NULL, &info), ERR_NOT_FOUND);
    assert_int_equal(recording_open("/dev/null", &r, NULL, &info), ERR_INVALID);
    assert_non_null(strstr(info.text, "not a regular file"));
    // Opening a pipe without a writer must not block.
    assert_int_equal(mkfifo(test_path(*state, "pipe"), 0600), 0);
    assert_int_equal(recording_open(test_path(*state, "pipe"), &r, NULL, &info), ERR_INVALID);
    if (geteuid() != 0) { // root may read anything
        shell(*state, "touch secret && chmod 0 secret");
        assert_int_equal(recording_open(test_path(*state, "secret"), &r, NULL, &info),
                         ERR_PERMISSION);
    }
}

static void a_newer_major_version_is_refused_and_a_newer_minor_one_is_not(void **state)
{
    CLEANUP(strbuf_release) struct strbuf file = {0};
    small_file(*state, 0, &file);
    static const struct {
        uint16_t major;
        uint16_t minor;
        uint32_t flags;
        enum err err;
    } cases[] = {
        {3, 0, 0, ERR_UNSUPPORTED}, {65535, 9, 0, ERR_UNSUPPORTED}, {2, 7, 0, ERR_OK},
        {2, 0, 1, ERR_UNSUPPORTED}, {2, 0, 0x10000, ERR_OK},        {1, 0, 0, ERR_OK},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(recording_release) struct recording r = {0};
        struct recording_open_result result = {0};
        struct err_info info = {0};
        uint8_t *bytes = (uint8_t *)file.data;
        put_u16(bytes + 8, cases[i].major);
        put_u16(bytes + 10, cases[i].minor);
        put_u32(bytes + 12, cases[i].flags);
        put_u64(bytes + 16, chunk_hash(bytes, 16));
        enum err err = recording_open_bytes(strbuf_bytes(&file), "test", NULL, &r, &result, &info);
        assert_int_equal(err, cases[i].err);
        if (err == ERR_UNSUPPORTED) {
            assert_non_null(strstr(info.text, "newer version"));
        } else {
            assert_int_equal(result.condition, RECORDING_COMPLETE);
        }
    }
}

// A hand-made file, chunk by chunk.
struct forge {
    struct strbuf file;
    uint32_t part;
};

static void forge_release(struct forge *f)
{
    strbuf_release(&f->file);
}

static void forge_begin(struct forge *f)
{
    uint8_t header[FILE_HEADER_BYTES];
    file_header_put(header);
    strbuf_append(&f->file, header, sizeof(header));
}

static void forge_chunk(struct forge *f, struct chunk_head head, const void *payload, size_t len)
{
    uint8_t bytes[CHUNK_HEAD_BYTES];
    head.generation = 1;
    head.part = f->part++;
    head.payload_hash = chunk_hash(payload, len);
    head.stored_bytes = head.stored_bytes != 0 ? head.stored_bytes : len;
    head.raw_bytes = head.raw_bytes != 0 ? head.raw_bytes : len;
    chunk_head_put(&head, bytes);
    strbuf_append(&f->file, bytes, sizeof(bytes));
    strbuf_append(&f->file, payload, len);
}

// A chunk of a table with one column.
struct forged_column {
    uint32_t type;
    uint32_t count;
    uint64_t first;
    uint8_t column;
    uint8_t encoding;
    uint32_t len;
    const void *bytes;
};

static void forge_column(struct forge *f, struct forged_column c)
{
    uint8_t head[TABLE_HEAD_BYTES + COLUMN_HEAD_BYTES] = {0};
    CLEANUP(strbuf_release) struct strbuf payload = {0};
    put_u64(head, c.first);
    put_u32(head + 8, c.count);
    put_u32(head + 12, 1);
    head[TABLE_HEAD_BYTES] = c.column;
    head[TABLE_HEAD_BYTES + 1] = c.encoding;
    put_u32(head + TABLE_HEAD_BYTES + 4, c.len);
    strbuf_append(&payload, head, sizeof(head));
    strbuf_append(&payload, c.bytes, c.len);
    forge_chunk(f, (struct chunk_head){.type = c.type}, payload.data, payload.len);
}

static void forge_totals(struct forge *f)
{
    forge_column(f, (struct forged_column){.type = CHUNK_TOTALS,
                                           .first = 0,
                                           .count = 1,
                                           .column = 1,
                                           .encoding = COLUMN_VALUES,
                                           .bytes = "\x2a",
                                           .len = 1});
}

static enum err
open_forged(const struct forge *f, struct recording *r, struct recording_open_result *result)
{
    enum err err = open_bytes(&f->file, f->file.len, r, result);
    if (err == ERR_OK) {
        assert_walkable(r);
    }
    return err;
}

static void unknown_chunks_and_columns_are_stepped_over(void **state)
{
    (void)state;
    CLEANUP(forge_release) struct forge f = {0};
    CLEANUP(recording_release) struct recording r = {0};
    struct recording_open_result result = {0};
    forge_begin(&f);
    forge_chunk(&f, (struct chunk_head){.type = CHUNK_SNAPSHOT_BEGIN}, "", 0);
    forge_chunk(&f, (struct chunk_head){.type = CHUNK_TYPE('N', 'E', 'W', '1')}, "future", 6);
    forge_totals(&f);
    forge_column(&f, (struct forged_column){.type = CHUNK_THREADS,
                                            .first = 0,
                                            .count = 2,
                                            .column = 200,
                                            .encoding = COLUMN_VALUES,
                                            .bytes = "\1\2",
                                            .len = 2}); // a column of a later version
    forge_column(&f, (struct forged_column){.type = CHUNK_PROCESSES,
                                            .first = 0,
                                            .count = 1,
                                            .column = 1,
                                            .encoding = COLUMN_VALUES,
                                            .bytes = "\7",
                                            .len = 1});
    forge_chunk(&f, (struct chunk_head){.type = CHUNK_SNAPSHOT_END}, "", 0);
    assert_int_equal(open_forged(&f, &r, &result), ERR_OK);
    assert_int_equal(result.unknown_chunks, 1);
    assert_int_equal(r.totals.allocations, 42);
    assert_int_equal(r.process_count, 1);
    assert_int_equal(r.processes[0].parent, REC_NONE); // the default of a missing column
    assert_int_equal(r.thread_count, 0);               // no column names their process
}

static void chunks_that_lie_are_left_out(void **state)
{
    (void)state;
    static const uint8_t ones[300];
    static const struct {
        const char *name;
        uint64_t first;
        uint32_t count;
        uint8_t encoding;
        uint32_t len;
    } columns[] = {
        {"too many entries", 0, GROUP_MAX_ENTRIES + 1, COLUMN_CONSTANT, 1},
        {"4 billion entries", 0, UINT32_MAX, COLUMN_CONSTANT, 1},
        {"no entries", 0, 0, COLUMN_CONSTANT, 1},
        {"not the first entry", 1, 1, COLUMN_VALUES, 1},
        {"far away", UINT64_MAX, 1, COLUMN_VALUES, 1},
        {"too few numbers", 0, 9, COLUMN_VALUES, 8},
        {"too many numbers", 0, 9, COLUMN_VALUES, 10},
        {"unknown encoding", 0, 9, 99, 9},
        {"text for numbers", 0, 9, COLUMN_TEXT, 9},
        {"no reference", 0, 9, COLUMN_DIFFERENCES, 9},
    };
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        CLEANUP(forge_release) struct forge f = {0};
        CLEANUP(recording_release) struct recording r = {0};
        struct recording_open_result result = {0};
        forge_begin(&f);
        forge_chunk(&f, (struct chunk_head){.type = CHUNK_SNAPSHOT_BEGIN}, "", 0);
        forge_totals(&f);
        forge_column(&f, (struct forged_column){.type = CHUNK_SLICES,
                                                .first = columns[i].first,
                                                .count = columns[i].count,
                                                .column = 1,
                                                .encoding = columns[i].encoding,
                                                .bytes = ones,
                                                .len = columns[i].len});
        forge_chunk(&f, (struct chunk_head){.type = CHUNK_SNAPSHOT_END}, "", 0);
        if (open_forged(&f, &r, &result) != ERR_OK || result.condition != RECORDING_DAMAGED ||
            strstr(result.missing, "1 damaged chunk was omitted") == NULL || r.slice_count != 0 ||
            r.totals.allocations != 42) {
            fail_msg("%s: \"%s\"", columns[i].name, result.missing);
        }
    }
}

static void heads_that_lie_about_lengths_are_left_out(void **state)
{
    (void)state;
    static const struct chunk_head heads[] = {
        {.type = CHUNK_ROWS, .raw_bytes = 1},
        {.type = CHUNK_ROWS, .raw_bytes = UINT64_MAX},
        {.type = CHUNK_ROWS, .raw_bytes = UINT64_MAX, .flags = CHUNK_ZSTD},
        {.type = CHUNK_ROWS, .raw_bytes = CHUNK_MAX_RAW_BYTES + 1, .flags = CHUNK_ZSTD},
        {.type = CHUNK_ROWS, .raw_bytes = 100000, .flags = CHUNK_ZSTD}, // not a frame
        {.type = CHUNK_ROWS, .flags = 1 << 5},
        {.type = CHUNK_STRINGS, .raw_bytes = 1 << 20, .flags = CHUNK_ZSTD | 1U << 31},
    };
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        CLEANUP(forge_release) struct forge f = {0};
        CLEANUP(recording_release) struct recording r = {0};
        struct recording_open_result result = {0};
        forge_begin(&f);
        forge_chunk(&f, (struct chunk_head){.type = CHUNK_SNAPSHOT_BEGIN}, "", 0);
        forge_totals(&f);
        forge_chunk(&f, heads[i], "0123456789abcdef0123456789abcdef", 32);
        forge_chunk(&f, (struct chunk_head){.type = CHUNK_SNAPSHOT_END}, "", 0);
        assert_int_equal(open_forged(&f, &r, &result), ERR_OK);
        assert_int_equal(result.condition, RECORDING_DAMAGED);
        assert_ptr_equal(strstr(result.missing, "1 damaged chunk "), result.missing);
    }
    // A stored length beyond the end of the file means a truncated file.
    static const uint64_t lengths[] = {33, 1 << 20, UINT64_MAX, UINT64_MAX - 47, INT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        CLEANUP(forge_release) struct forge f = {0};
        CLEANUP(recording_release) struct recording r = {0};
        struct recording_open_result result = {0};
        forge_begin(&f);
        forge_chunk(&f, (struct chunk_head){.type = CHUNK_SNAPSHOT_BEGIN}, "", 0);
        forge_totals(&f);
        forge_chunk(&f, (struct chunk_head){.type = CHUNK_ROWS, .stored_bytes = lengths[i]},
                    "0123456789abcdef0123456789abcdef", 32);
        assert_int_equal(open_forged(&f, &r, &result), ERR_OK);
        char cut[96];
        (void)snprintf(cut, sizeof(cut), "its last %d bytes are not a complete chunk",
                       CHUNK_HEAD_BYTES + 32);
        assert_non_null(strstr(result.missing, cut));
    }
}

// Return the process's peak memory in bytes.
static uint64_t peak_memory_bytes(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (uint64_t)usage.ru_maxrss * 1024;
}

// Slices that take almost no bytes in the file and many in memory. The snapshot announces some.
static void forge_bomb(struct forge *f, size_t groups, uint64_t announced)
{
    struct {
        uint32_t type;
        uint32_t reserved;
        uint64_t entries;
    } announcement = {CHUNK_SLICES, 0, announced};
    forge_begin(f);
    forge_chunk(f, (struct chunk_head){.type = CHUNK_SNAPSHOT_BEGIN}, (const char *)&announcement,
                sizeof(announcement));
    forge_totals(f);
    for (size_t i = 0; i < groups; i++) {
        forge_column(f, (struct forged_column){.type = CHUNK_SLICES,
                                               .first = i * GROUP_MAX_ENTRIES,
                                               .count = GROUP_MAX_ENTRIES,
                                               .column = 1,
                                               .encoding = COLUMN_CONSTANT,
                                               .bytes = "\1",
                                               .len = 1});
    }
    forge_chunk(f, (struct chunk_head){.type = CHUNK_SNAPSHOT_END}, "", 0);
}

static void bombs_do_not_take_more_memory_than_their_size_allows(void **state)
{
    (void)state;
    CLEANUP(forge_release) struct forge f = {0};
    CLEANUP(recording_release) struct recording r = {0};
    struct recording_open_result result = {0};
    struct recording_limits limits = {.base_bytes = 32 << 20, .ratio = 16};
    struct err_info info = {0};
    uint64_t before = peak_memory_bytes();
    forge_bomb(&f, 2000, 0); // 7 GB of slices in 150 KB
    must(recording_open_bytes(strbuf_bytes(&f.file), "test", &limits, &r, &result, &info), &info);
    assert_int_equal(result.condition, RECORDING_DAMAGED);
    assert_true(r.slice_count * sizeof(*r.slices) <= limits.base_bytes + limits.ratio * f.file.len);
    // Arrays grow by doubling, and a copy is made, so the limit is four times the allowance.
    assert_true(peak_memory_bytes() - before < 4 * limits.base_bytes + (16 << 20));
}

// An announcement is a claim: what it promises is read up to the limit of memory.
static void announced_bombs_do_not_take_more_than_the_limit_of_memory(void **state)
{
    (void)state;
    static const uint64_t announced[] = {2000 * (uint64_t)GROUP_MAX_ENTRIES, UINT64_MAX,
                                         UINT64_MAX / 64};
    const struct recording_limits limits = {
        .base_bytes = 1 << 20, .ratio = 16, .most_bytes = 32 << 20};
    const uint64_t before = peak_memory_bytes();
    for (size_t i = 0; i < ARRAY_LEN(announced); i++) {
        CLEANUP(forge_release) struct forge f = {0};
        CLEANUP(recording_release) struct recording r = {0};
        struct recording_open_result result = {0};
        struct err_info info = {0};
        forge_bomb(&f, 2000, announced[i]);
        assert_int_equal(
            recording_open_bytes(strbuf_bytes(&f.file), "test", &limits, &r, &result, &info),
            ERR_LIMIT);
        assert_string_equal(info.text, "'test' needs more memory than the limit of 32.0 MiB, its "
                                       "share of the memory here");
        // A sanitizer keeps what was freed, so only the first bomb's memory is its own.
        assert_true(i > 0 || peak_memory_bytes() - before < 4 * limits.most_bytes + (16 << 20));
    }
}

// Less memory gives a smaller recording: the history of rows is omitted first, as a whole.
static void what_does_not_fit_into_memory_is_left_out_and_reported(void **state)
{
    CLEANUP(recording_release) struct recording whole = {0};
    CLEANUP(strbuf_release) struct strbuf file = {0};
    unsigned pruned = 0;
    unsigned refused = 0;
    assert_int_equal(recording_random_realistic(5, 4000, &whole), ERR_OK);
    written(&whole, &(struct recording_write_options){.group_count = 100}, *state, &file);
    for (uint64_t most = (uint64_t)64 << 20; most > 1000; most = most * 3 / 4) {
        CLEANUP(recording_release) struct recording r = {0};
        struct recording_open_result result = {0};
        struct err_info info = {0};
        const struct recording_limits limits = {
            .base_bytes = (uint64_t)256 << 20, .ratio = 256, .most_bytes = most};
        const enum err err =
            recording_open_bytes(strbuf_bytes(&file), "test", &limits, &r, &result, &info);
        if (err != ERR_OK) {
            assert_int_equal(err, ERR_LIMIT);
            assert_non_null(strstr(info.text, "than the limit of"));
            refused++;
            continue;
        }
        assert_int_equal(refused, 0); // less memory never gives more
        assert_walkable(&r);
        assert_true(entry_count(&r) * 8 <= most); // no entry is smaller, except texts
        if (r.cell_count != whole.cell_count) {
            assert_int_equal(r.cell_count + r.cohort_count + r.size_bucket_count, 0);
            assert_true(result.missing[0] != '\0');
            assert_int_equal(result.condition, RECORDING_PRUNED);
        }
        pruned += r.cell_count == 0 && r.row_count == whole.row_count;
    }
    assert_in_range(pruned, 1, 20);
    assert_in_range(refused, 1, 40);
}

static void zstd_bombs_are_not_unpacked(void **state)
{
    (void)state;
    CLEANUP(forge_release) struct forge f = {0};
    CLEANUP(recording_release) struct recording r = {0};
    struct recording_open_result result = {0};
    size_t zeros_bytes = 64 << 20;
    void *zeros = calloc(1, zeros_bytes);
    char packed[16384];
    assert_non_null(zeros);
    size_t len = ZSTD_compress(packed, sizeof(packed), zeros, zeros_bytes, 1);
    assert_false(ZSTD_isError(len));
    free(zeros);
    uint64_t before = peak_memory_bytes();
    forge_begin(&f);
    forge_chunk(&f, (struct chunk_head){.type = CHUNK_SNAPSHOT_BEGIN}, "", 0);
    forge_totals(&f);
    // The head states the frame's true size, which is too large. Then it states a false one within
    // the bounds.
    static const uint64_t raw_bytes[] = {64 << 20, CHUNK_MAX_RAW_BYTES, 70000};
    for (size_t i = 0; i < ARRAY_LEN(raw_bytes); i++) {
        forge_chunk(
            &f,
            (struct chunk_head){.type = CHUNK_ROWS, .flags = CHUNK_ZSTD, .raw_bytes = raw_bytes[i]},
            packed, len);
    }
    forge_chunk(&f, (struct chunk_head){.type = CHUNK_SNAPSHOT_END}, "", 0);
    assert_int_equal(open_forged(&f, &r, &result), ERR_OK);
    assert_non_null(strstr(result.missing, "3 damaged chunks were omitted"));
    assert_true(peak_memory_bytes() - before < 24 << 20);
}

static void a_recording_of_a_million_equal_rows_still_opens(void **state)
{
    enum {
        ROWS = 1000000
    };
    struct err_info info = {0};
    CLEANUP(recording_release) struct recording opened = {0};
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    CLEANUP(recording_release) struct recording alike = {0};
    struct recording_open_result result = {0};
    uint32_t process = 0;
    uint32_t thread = 0;
    uint32_t frame = 0;
    assert_int_equal(recording_builder_init(&b), ERR_OK);
    assert_int_equal(recording_builder_process(&b, 1, "p", &process), ERR_OK);
    assert_int_equal(recording_builder_thread(&b, process, 1, "t", &thread), ERR_OK);
    assert_int_equal(recording_builder_frame(&b, REC_NONE, 16, NULL, 0, &frame), ERR_OK);
    assert_int_equal(rows_vec_reserve(&b.rows, ROWS), ERR_OK);
    assert_int_equal(nodes_vec_reserve(&b.nodes, ROWS), ERR_OK);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(nodes_vec_push(&b.nodes, (struct rec_node){.parent = i, .frame = frame}),
                         ERR_OK);
        assert_int_equal(rows_vec_push(&b.rows, (struct rec_row){.node = i, .allocations = 1}),
                         ERR_OK);
    }
    recording_builder_sum(&b);
    assert_int_equal(recording_builder_finish(&b, &alike), ERR_OK);
    must(recording_write(&alike, test_path(*state, "alike.cairn"), NULL, &info), &info);
    must(recording_open(test_path(*state, "alike.cairn"), &opened, &result, &info), &info);
    assert_int_equal(result.condition, RECORDING_COMPLETE);
    assert_true(result.file_bytes < 100000);
    size_t entry = 0;
    assert_null(recording_difference(&alike, &opened, &entry));
}

static void wild_tables_come_out_walkable(void **state)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        CLEANUP(recording_release) struct recording wild = {0};
        CLEANUP(strbuf_release) struct strbuf file = {0};
        CLEANUP(recording_release) struct recording r = {0};
        struct recording_open_result result = {0};
        assert_int_equal(recording_random_wild(seed, seed % 40, &wild), ERR_OK);
        written(&wild, NULL, *state, &file);
        assert_int_equal(open_bytes(&file, file.len, &r, &result), ERR_OK);
        assert_walkable(&r);
        assert_int_equal(r.strings.count, wild.strings.count);
        assert_int_equal(r.totals.peak_bytes, wild.totals.peak_bytes);
        assert_int_equal(r.module_count, wild.module_count);
        // The result is stable: written again, it needs no repair.
        struct recording_open_result again = {0};
        CLEANUP(strbuf_release) struct strbuf second = {0};
        CLEANUP(recording_release) struct recording r2 = {0};
        written(&r, NULL, *state, &second);
        assert_int_equal(open_bytes(&second, second.len, &r2, &again), ERR_OK);
        assert_int_equal(again.condition, RECORDING_COMPLETE);
        size_t entry = 0;
        assert_null(recording_difference(&r, &r2, &entry));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(bombs_do_not_take_more_memory_than_their_size_allows),
        TEST_IN_FOLDER(announced_bombs_do_not_take_more_than_the_limit_of_memory),
        TEST_IN_FOLDER(what_does_not_fit_into_memory_is_left_out_and_reported),
        TEST_IN_FOLDER(zstd_bombs_are_not_unpacked),
        TEST_IN_FOLDER(a_file_cut_at_any_byte_opens_up_to_there),
        TEST_IN_FOLDER(every_flipped_bit_is_harmless_or_reported),
        TEST_IN_FOLDER(random_damage_to_a_large_file_is_survived),
        TEST_IN_FOLDER(an_older_whole_snapshot_is_better_than_a_newer_broken_one),
        TEST_IN_FOLDER(what_is_no_recording_is_named),
        TEST_IN_FOLDER(what_is_no_file_is_refused),
        TEST_IN_FOLDER(a_newer_major_version_is_refused_and_a_newer_minor_one_is_not),
        TEST_IN_FOLDER(unknown_chunks_and_columns_are_stepped_over),
        TEST_IN_FOLDER(chunks_that_lie_are_left_out),
        TEST_IN_FOLDER(heads_that_lie_about_lengths_are_left_out),
        TEST_IN_FOLDER(a_recording_of_a_million_equal_rows_still_opens),
        TEST_IN_FOLDER(wild_tables_come_out_walkable),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
