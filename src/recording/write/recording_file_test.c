// SPDX-License-Identifier: MIT
// Writer and reader together: the reader returns what was written, for whole files and for several
// snapshots.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "host/os/file.h"
#include "recording/format/column.h"
#include "recording/format/schema.h"
#include "recording/read/recording_reader.h"
#include "recording/test_support/recording_bytes.h"
#include "recording/test_support/recording_random.h"
#include "recording/test_support/recording_text.h"
#include "recording/test_support/test_folder.h"
#include "recording/test_support/test_recording.h"
#include "recording/write/group_encoder.h"
#include "recording/write/recording_writer.h"

static void assert_same(const struct recording *want, const struct recording *got)
{
    size_t entry = 0;
    const char *table = recording_difference(want, got, &entry);
    if (table != NULL) {
        fail_msg("%s differ at %zu", table, entry);
    }
}

// Write, read, compare; the file must be complete.
static void round_trip(const struct recording *recording,
                       const struct recording_write_options *options,
                       const char *path)
{
    struct err_info info = {0};
    struct recording_open_result result = {0};
    CLEANUP(recording_release) struct recording opened = {0};
    must(recording_write(recording, path, options, &info), &info);
    must(recording_open(path, &opened, &result, &info), &info);
    assert_string_equal(result.missing, "");
    assert_int_equal(result.condition, RECORDING_COMPLETE);
    assert_same(recording, &opened);
}

static void every_byte_of_every_table_has_a_column(void **state)
{
    (void)state;
    static const struct {
        const char *table;
        size_t bytes; // size of fields named reserved, and of padding at the end
    } uncovered[] = {{"rss_samples", 4}, {"counters", 4}, {"threads", 4},
                     {"mappings", 4},    {"reallocs", 4}, {"parts", 4}};
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        const struct rec_table *table = &rec_tables[i];
        bool ids[UINT8_MAX + 1] = {true};
        size_t covered = 0;
        for (size_t j = 0; j < table->column_count; j++) {
            assert_false(ids[table->columns[j].id]);
            ids[table->columns[j].id] = true;
            // A reference must come earlier and be as old, or a reader could not use it.
            assert_true(ids[table->columns[j].reference]);
            assert_true(table->columns[j].reference < table->columns[j].id);
            covered += table->columns[j].width_bytes;
        }
        for (size_t j = 0; j < ARRAY_LEN(uncovered); j++) {
            covered += strcmp(uncovered[j].table, table->name) == 0 ? uncovered[j].bytes : 0;
        }
        if (i == REC_TABLE_META) {
            assert_int_equal(covered, sizeof(struct rec_meta) + sizeof(uint64_t) - 4); // padding
        } else if (i == REC_TABLE_TOTALS) {
            assert_int_equal(covered, sizeof(struct rec_totals));
        } else if (table->columns != NULL) {
            assert_int_equal(covered, table->entry_bytes);
        }
        assert_ptr_equal(rec_table_find(table->chunk_type), table);
    }
}

// A chunk of strings holds a mebibyte of text, or one string.
static void strings_fill_chunks(void **state)
{
    (void)state;
    enum {
        HALF = 1 << 19,
        ALL = 2 * HALF,
        STRINGS = 4,
    };
    static const struct {
        size_t lens[STRINGS];
        size_t counts[STRINGS]; // of the chunk that begins with the string
    } cases[] = {
        {{HALF, HALF, 0, 1}, {3, 3, 2, 1}},
        {{HALF, HALF + 1, HALF - 1, 1}, {1, 2, 2, 1}},
        {{ALL, 0, ALL + 1, 1}, {2, 1, 1, 1}},
    };
    CLEANUP(group_encoder_release) struct group_encoder encoder = {0};
    char *text = malloc(ALL + ALL + HALF);
    assert_non_null(text);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t offsets[STRINGS];
        struct rec_strings strings = {.data = text, .offsets = offsets, .count = STRINGS};
        for (size_t k = 0; k < STRINGS; k++) {
            offsets[k] = strings.data_bytes;
            memset(text + strings.data_bytes, 'x', cases[i].lens[k]);
            strings.data_bytes += cases[i].lens[k];
            text[strings.data_bytes++] = '\0';
        }
        for (uint32_t first = 0; first < STRINGS; first++) {
            size_t count = 0;
            assert_int_equal(group_measure_strings(&encoder, &strings, first, STRINGS, &count),
                             ERR_OK);
            assert_int_equal(count, cases[i].counts[first]);
        }
    }
    free(text);
}

static void an_empty_recording_comes_back_with_its_root(void **state)
{
    struct recording empty = {0};
    struct err_info info = {0};
    struct recording_open_result result = {0};
    CLEANUP(recording_release) struct recording opened = {0};
    const char *path = test_path(*state, "empty.cairn");
    must(recording_write(&empty, path, NULL, &info), &info);
    must(recording_open(path, &opened, &result, &info), &info);
    assert_int_equal(result.condition, RECORDING_COMPLETE);
    assert_int_equal(opened.node_count, 1);
    assert_int_equal(opened.nodes[0].parent, REC_NONE);
    assert_int_equal(opened.strings.count, 1);
    assert_string_equal(rec_string_get(&opened, 0), "");
    assert_int_equal(opened.row_count, 0);
}

static void a_small_recording_comes_back_whatever_the_options(void **state)
{
    static const struct recording_write_options options[] = {
        {0},
        {.is_plain = true},
        {.level = 19},
        {.group_count = 1},
        {.group_count = 2},
        {.is_durable = true},
        {.generation = 7},
        {.group_count = UINT32_MAX},
    };
    struct err_info info = {0};
    CLEANUP(recording_release) struct recording small = {0};
    must(recording_from_text(test_recording_text, &small, &info), &info);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        round_trip(&small, &options[i], test_path(*state, "small.cairn"));
    }
    round_trip(&small, NULL, test_path(*state, "small.cairn"));
}

static void realistic_recordings_come_back(void **state)
{
    static const size_t sizes[] = {2, 10, 100, 1000, 20000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        CLEANUP(recording_release) struct recording r = {0};
        assert_int_equal(recording_random_realistic(i, sizes[i], &r), ERR_OK);
        round_trip(&r, NULL, test_path(*state, "real.cairn"));
        // Several groups a table; the last one is not full.
        round_trip(&r, &(struct recording_write_options){.group_count = 97},
                   test_path(*state, "groups.cairn"));
    }
}

static void columns_of_any_numbers_come_back(void **state)
{
    (void)state;
    struct random_source random = {.state = 99};
    for (size_t round = 0; round < 3000; round++) {
        uint64_t values[40] = {0};
        uint64_t reference[40];
        uint64_t decoded[40];
        size_t count = 1 + random_below(&random, ARRAY_LEN(values));
        unsigned shift = (unsigned)random_below(&random, 64);
        unsigned shape = (unsigned)random_below(&random, 5);
        for (size_t i = 0; i < count; i++) {
            reference[i] = random_next(&random) >> shift;
            uint64_t noise = random_next(&random) >> (63 - shift / 8);
            const uint64_t shapes[5] = {reference[0], reference[i] >> 1, reference[i] - noise,
                                        (i > 0 ? values[i - 1] : 0) + noise,
                                        reference[0] + i - noise % 3};
            values[i] = shapes[shape];
        }
        struct column_context given = {.reference = round % 2 == 0 ? reference : NULL,
                                       .first = round % 5 == 0 ? values[0] - 1
                                                               : random_below(&random, 1000)};
        CLEANUP(strbuf_release) struct strbuf bytes = {0};
        enum column_encoding encoding = column_encode(values, given, count, &bytes);
        assert_int_equal(strbuf_result(&bytes), ERR_OK);
        assert_true(column_decode(strbuf_bytes(&bytes), encoding, given, count, decoded));
        assert_memory_equal(values, decoded, count * sizeof(*values));
        struct bytes cut = {.data = strbuf_bytes(&bytes).data, .len = bytes.len - 1};
        assert_false(column_decode(cut, encoding, given, count, decoded));
        strbuf_append_char(&bytes, '\0');
        assert_false(column_decode(strbuf_bytes(&bytes), encoding, given, count, decoded));
    }
}

static void open_file(const char *path, int *fd)
{
    *fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(*fd >= 0);
}

static void of_several_snapshots_the_last_is_taken(void **state)
{
    const char *path = test_path(*state, "several.cairn");
    CLEANUP(recording_writer_release) struct recording_writer w = {0};
    struct err_info info = {0};
    int fd = -1;
    open_file(path, &fd);
    must(recording_writer_init(&w, fd, path, NULL, &info), &info);
    for (uint32_t i = 1; i <= 4; i++) {
        CLEANUP(recording_release) struct recording written = {0};
        CLEANUP(recording_release) struct recording opened = {0};
        struct recording_open_result result = {0};
        assert_int_equal(recording_random_realistic(i, (size_t)i * 300, &written), ERR_OK);
        written.meta.state = REC_STATE_RUNNING;
        must(recording_writer_snapshot(&w, &written, &info), &info);
        // Chunks of other types may be between; the reader ignores them.
        must(recording_append_chunk(&w, CHUNK_TYPE('E', 'V', 'N', 'T'),
                                    (struct bytes){.data = (const uint8_t *)"event", .len = 5},
                                    &info),
             &info);
        must(recording_open(path, &opened, &result, &info), &info);
        assert_int_equal(result.condition, RECORDING_GROWING);
        assert_int_equal(result.generation, i);
        assert_same(&written, &opened);
        if (i == 4) {
            must(recording_writer_finish(&w, &info), &info);
            recording_release(&opened);
            must(recording_open(path, &opened, &result, &info), &info);
            assert_int_equal(result.condition, RECORDING_COMPLETE);
            assert_same(&written, &opened);
        }
    }
    assert_int_equal(close(fd), 0);
}

static void ignore_file_size_signal(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    assert_int_equal(sigaction(SIGXFSZ, &ignore, NULL), 0); // write then fails with EFBIG
}

// Run with files limited to `bytes`, which has the effect of a full disk.
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_leaves_the_old_file_and_no_litter(void **state)
{
    const char *path = test_path(*state, "out.cairn");
    struct err_info info = {0};
    CLEANUP(recording_release) struct recording small = {0};
    CLEANUP(recording_release) struct recording large = {0};
    CLEANUP(recording_release) struct recording opened = {0};
    must(recording_from_text(test_recording_text, &small, &info), &info);
    assert_int_equal(recording_random_realistic(1, 5000, &large), ERR_OK);
    must(recording_write(&small, path, NULL, &info), &info);
    ignore_file_size_signal();
    static const rlim_t limits[] = {0, 10, 24, 1000, 20000, 60000};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        limit_files(limits[i]);
        enum err err = recording_write(&large, path, NULL, &info);
        limit_files(RLIM_INFINITY);
        assert_int_equal(err, ERR_IO);
        assert_int_equal(info.errno_value, EFBIG);
        assert_non_null(strstr(info.text, path));
    }
    assert_int_equal(test_folder_count(*state), 1);
    must(recording_open(test_path(*state, "out.cairn"), &opened, NULL, &info), &info);
    assert_same(&small, &opened);
}

static void appending_to_a_full_disk_keeps_what_was_there(void **state)
{
    CLEANUP(recording_writer_release) struct recording_writer w = {0};
    CLEANUP(recording_release) struct recording first = {0};
    CLEANUP(recording_release) struct recording second = {0};
    struct err_info info = {0};
    int fd = -1;
    open_file(test_path(*state, "append.cairn"), &fd);
    assert_int_equal(recording_random_realistic(1, 500, &first), ERR_OK);
    assert_int_equal(recording_random_realistic(2, 600, &second), ERR_OK);
    must(recording_writer_init(&w, fd, "append.cairn", NULL, &info), &info);
    must(recording_writer_snapshot(&w, &first, &info), &info);
    ignore_file_size_signal();
    uint64_t good_end = w.end;
    for (rlim_t extra = 0; extra < 8000; extra += 777) {
        CLEANUP(recording_release) struct recording opened = {0};
        struct recording_open_result result = {0};
        limit_files(good_end + extra);
        enum err err = recording_writer_snapshot(&w, &second, &info);
        limit_files(RLIM_INFINITY);
        assert_int_equal(err, ERR_IO);
        must(recording_open_fd(fd, "append.cairn", NULL, &opened, &result, &info), &info);
        assert_int_equal(result.file_bytes, good_end);
        assert_same(&first, &opened);
    }
    // There is room again: the writer continues.
    CLEANUP(recording_release) struct recording opened = {0};
    struct recording_open_result result = {0};
    must(recording_writer_snapshot(&w, &second, &info), &info);
    must(recording_writer_finish(&w, &info), &info);
    must(recording_open_fd(fd, "append.cairn", NULL, &opened, &result, &info), &info);
    assert_int_equal(result.condition, RECORDING_COMPLETE);
    assert_same(&second, &opened);
    assert_int_equal(close(fd), 0);
}

static void places_that_cannot_be_written_are_named(void **state)
{
    struct recording empty = {0};
    struct err_info info = {0};
    const char *path = test_path(*state, "no/such/folder.cairn");
    assert_int_equal(recording_write(&empty, path, NULL, &info), ERR_NOT_FOUND);
    assert_non_null(strstr(info.text, "folder.cairn"));
    CLEANUP(recording_writer_release) struct recording_writer w = {0};
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(recording_writer_init(&w, fd, "/dev/full", NULL, &info), ERR_IO);
    assert_int_equal(info.errno_value, ENOSPC);
    assert_non_null(strstr(info.text, "/dev/full"));
    assert_int_equal(close(fd), 0);
}

struct progress_log {
    uint64_t done;
    uint64_t total;
    uint64_t stop_at;
};

static bool log_progress(void *context, uint64_t done, uint64_t total)
{
    struct progress_log *log = context;
    assert_true(done >= log->done);
    assert_true(done <= total);
    log->done = done;
    log->total = total;
    return done < log->stop_at;
}

static void progress_ends_at_the_total_and_can_stop_the_writing(void **state)
{
    const char *path = test_path(*state, "progress.cairn");
    struct err_info info = {0};
    struct progress_log log = {.stop_at = UINT64_MAX};
    struct recording_write_options options = {
        .group_count = 100, .progress = log_progress, .progress_context = &log};
    CLEANUP(recording_release) struct recording r = {0};
    assert_int_equal(recording_random_realistic(1, 1000, &r), ERR_OK);
    must(recording_write(&r, path, &options, &info), &info);
    assert_int_equal(log.done, log.total);
    assert_true(log.total > r.row_count + r.node_count);
    assert_int_equal(unlink(path), 0);
    log = (struct progress_log){.stop_at = log.total / 2};
    assert_int_equal(recording_write(&r, path, &options, &info), ERR_CANCELLED);
    assert_int_equal(test_folder_count(*state), 0);
}

// Supplies the tables of a recording, one after the other, in pieces of the requested size.
struct lender {
    const struct recording *recording;
    size_t lent;
};

static size_t count_lent(void *context, enum rec_table_index table)
{
    const struct lender *lender = context;
    const bool is_lent = table == REC_TABLE_CELLS || table == REC_TABLE_SIZE_BUCKETS ||
                         table == REC_TABLE_LIFETIME_BUCKETS;
    return is_lent ? rec_table_count(&rec_tables[table], lender->recording) : 0;
}

static void begin_lending(void *context, enum rec_table_index table)
{
    struct lender *lender = context;
    (void)table; // only one at a time
    lender->lent = 0;
}

static enum err lend(void *context, enum rec_table_index table, void *entries, size_t count)
{
    struct lender *lender = context;
    const size_t entry_bytes = rec_tables[table].entry_bytes;
    const char *items = rec_table_items(&rec_tables[table], lender->recording);
    memcpy(entries, items + lender->lent * entry_bytes, count * entry_bytes);
    lender->lent += count;
    return lender->lent <= count_lent(lender, table) ? ERR_OK : ERR_NO_MEMORY;
}

static void tables_can_be_made_while_they_are_written(void **state)
{
    CLEANUP(recording_release) struct recording r = {0};
    assert_int_equal(recording_random_realistic(1, 1000, &r), ERR_OK);
    struct lender lender = {.recording = &r};
    const struct table_supply supply = {
        .context = &lender, .count = count_lent, .begin = begin_lending, .next = lend};
    struct recording bare = r; // without the tables that lend() supplies
    bare.cell_count = 0;
    bare.size_bucket_count = 0;
    bare.lifetime_bucket_count = 0;
    struct err_info info = {0};
    const char *path = test_path(*state, "supplied.cairn");
    const struct recording_write_options options = {.group_count = 100, .supply = &supply};
    must(recording_write(&bare, path, &options, &info), &info);
    CLEANUP(recording_release) struct recording opened = {0};
    must(recording_open(path, &opened, NULL, &info), &info);
    assert_same(&r, &opened);
    assert_true(opened.cell_count > 200);
}

static void a_recording_that_is_not_sound_is_refused_or_mended(void **state)
{
    // Strings that exceed their data: the writer must not read further.
    char data[] = {'\0', 'a', 'b'};
    uint64_t offsets[] = {0, 1};
    struct recording r = {
        .strings = {.data = data, .offsets = offsets, .count = 2, .data_bytes = sizeof(data)}};
    struct err_info info = {0};
    const char *path = test_path(*state, "strings.cairn");
    assert_int_equal(recording_write(&r, path, NULL, &info), ERR_CORRUPT);
    offsets[1] = 99;
    assert_int_equal(recording_write(&r, path, NULL, &info), ERR_CORRUPT);
    assert_int_equal(test_folder_count(*state), 0);
}

static void a_string_that_is_too_long_is_cut_and_the_others_stay(void **state)
{
    enum {
        LEN = GROUP_MAX_STRING_BYTES + 100
    };
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    CLEANUP(recording_release) struct recording made = {0};
    CLEANUP(recording_release) struct recording back = {0};
    CLEANUP(text_freep) char *text = malloc(LEN + 1);
    rec_string ids[3];
    struct err_info info = {0};
    assert_non_null(text);
    memset(text, 'x', LEN);
    text[LEN] = '\0';
    assert_int_equal(recording_builder_init(&b), ERR_OK);
    assert_int_equal(recording_builder_string(&b, "before", &ids[0]), ERR_OK);
    assert_int_equal(recording_builder_string(&b, text, &ids[1]), ERR_OK);
    assert_int_equal(recording_builder_string(&b, "after", &ids[2]), ERR_OK);
    assert_int_equal(recording_builder_finish(&b, &made), ERR_OK);
    const char *path = test_path(*state, "long.cairn");
    assert_int_equal(recording_write(&made, path, NULL, &info), ERR_OK);
    struct recording_open_result result = {0};
    assert_int_equal(recording_open(path, &back, &result, &info), ERR_OK);
    assert_string_equal(rec_string_get(&back, ids[0]), "before");
    assert_int_equal(strlen(rec_string_get(&back, ids[1])), GROUP_MAX_STRING_BYTES);
    assert_string_equal(rec_string_get(&back, ids[2]), "after");
}

static void a_builder_without_memory_for_its_strings_says_so(void **state)
{
    (void)state;
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    struct recording made = {0};
    assert_int_equal(recording_builder_init(&b), ERR_OK);
    const size_t text_bytes = b.strings.texts.len;
    b.strings.texts.len = SIZE_MAX / 2; // no machine has as much
    assert_int_equal(recording_builder_finish(&b, &made), ERR_NO_MEMORY);
    b.strings.texts.len = text_bytes;
}

// The size of a file says little about what it unpacks to: the snapshot announces that.
static void what_compresses_well_is_read_whole(void **state)
{
    CLEANUP(recording_release) struct recording whole = {0};
    CLEANUP(recording_release) struct recording r = {0};
    CLEANUP(strbuf_release) struct strbuf file = {0};
    struct recording_open_result result = {0};
    struct err_info info = {0};
    const struct recording_limits limits = {
        .base_bytes = 100 << 10, .ratio = 1, .most_bytes = 64 << 20};
    const char *path = test_path(*state, "well.cairn");
    assert_int_equal(recording_random_realistic(5, 4000, &whole), ERR_OK);
    must(
        recording_write(&whole, path, &(struct recording_write_options){.group_count = 100}, &info),
        &info);
    must(file_read(path, SIZE_MAX, &file, &info), &info);
    must(recording_open_bytes(strbuf_bytes(&file), "test", &limits, &r, &result, &info), &info);
    assert_string_equal(result.missing, "");
    assert_int_equal(result.condition, RECORDING_COMPLETE);
    const uint64_t table_bytes = r.row_count * sizeof(*r.rows) + r.cell_count * sizeof(*r.cells) +
                                 r.cohort_count * sizeof(*r.cohorts);
    assert_true(table_bytes > limits.base_bytes + limits.ratio * file.len); // it shows something
    assert_same(&whole, &r);
}

// Each look is a second after the last one.
static uint64_t seconds(void *context)
{
    uint64_t *now_ns = context;
    *now_ns += 1000000000;
    return *now_ns;
}

static void reading_shows_its_progress(void **state)
{
    CLEANUP(recording_release) struct recording whole = {0};
    CLEANUP(recording_release) struct recording r = {0};
    CLEANUP(strbuf_release) struct strbuf file = {0};
    struct recording_open_result result = {0};
    struct err_info info = {0};
    struct progress progress;
    uint64_t now_ns = 0;
    char said[8192] = "";
    FILE *stream = fmemopen(said, sizeof(said), "w");
    assert_non_null(stream);
    progress_init_with_clock(&progress, stream, 80, seconds, &now_ns);
    struct recording_limits limits = recording_default_limits;
    limits.progress = &progress;
    const char *path = test_path(*state, "shown.cairn");
    assert_int_equal(recording_random_realistic(5, 400, &whole), ERR_OK);
    must(
        recording_write(&whole, path, &(struct recording_write_options){.group_count = 100}, &info),
        &info);
    must(file_read(path, SIZE_MAX, &file, &info), &info);
    must(recording_open_bytes(strbuf_bytes(&file), "test", &limits, &r, &result, &info), &info);
    assert_int_equal(fclose(stream), 0);
    assert_non_null(strstr(said, "reading the recording: 0%"));
    assert_non_null(strstr(said, "reading the recording: 9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_of_every_table_has_a_column),
        cmocka_unit_test(columns_of_any_numbers_come_back),
        cmocka_unit_test(strings_fill_chunks),
        TEST_IN_FOLDER(an_empty_recording_comes_back_with_its_root),
        TEST_IN_FOLDER(a_small_recording_comes_back_whatever_the_options),
        TEST_IN_FOLDER(realistic_recordings_come_back),
        TEST_IN_FOLDER(of_several_snapshots_the_last_is_taken),
        TEST_IN_FOLDER(a_full_disk_leaves_the_old_file_and_no_litter),
        TEST_IN_FOLDER(appending_to_a_full_disk_keeps_what_was_there),
        TEST_IN_FOLDER(places_that_cannot_be_written_are_named),
        TEST_IN_FOLDER(progress_ends_at_the_total_and_can_stop_the_writing),
        TEST_IN_FOLDER(tables_can_be_made_while_they_are_written),
        TEST_IN_FOLDER(a_recording_that_is_not_sound_is_refused_or_mended),
        TEST_IN_FOLDER(a_string_that_is_too_long_is_cut_and_the_others_stay),
        TEST_IN_FOLDER(what_compresses_well_is_read_whole),
        TEST_IN_FOLDER(reading_shows_its_progress),
        cmocka_unit_test(a_builder_without_memory_for_its_strings_says_so),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
