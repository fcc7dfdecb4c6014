// SPDX-License-Identifier: MIT
// recording_example: writes recordings for tests, and prints what the reader makes of a file.
//
//   recording_example write KIND FILE    KIND: tiny, small, plain, groups, history, two, cut, wild,
//                                        large
//   recording_example read FILE          every field of every table as JSON
//
// `tiny` is the example of docs/format/recording.md. `read` prints what tools/mini_reader.py
// prints, which was written from the specification alone; the test compares the two.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "recording/format/schema.h"
#include "recording/read/recording_reader.h"
#include "recording/test_support/recording_bytes.h"
#include "recording/test_support/recording_random.h"
#include "recording/test_support/recording_text.h"
#include "recording/write/recording_writer.h"

static const char tiny_text[] = "main 2 48 1 16\n";

static const char small_text[] =
    "process server\n"
    "thread main\n"
    "app!main(app.c:12);libx.so!load(x.c:3)=>grow(v.h:9) 10 640 4 256\n"
    "  @0 4 256\n"
    "  @3 6 384 4 256\n"
    "  size 14 10 640\n"
    "  life 3 4 256\n"
    "  cohort 0 3 4 256\n"
    "  cohort 3 - 6 384\n"
    "thread worker\n"
    "app!main(app.c:12);app!work 3 30 3 30 3 30 3 30 30\n"
    "  @1 3 30 3 30 3\n"
    "  size 9 3 30\n"
    "process child\n"
    "app!main(app.c:12) 1 8\n"
    "  @2 1 8\n"
    "  size 8 1 8\n";

// Rows that were active in one slice and in several, with blocks that outlived their slice.
static const char history_text[] = "process server\n"
                                   "thread main\n"
                                   "main;a 10 100 10 100\n"
                                   "  @1 10 100 10 100 10\n"
                                   "  size 9 10 100\n"
                                   "  life 0 10 100\n"
                                   "main;b 6 300 4 260\n"
                                   "  @0 5 292 1 8\n"
                                   "  @2 1 8 3 252\n"
                                   "  size 8 4 32\n"
                                   "  size 23 2 268\n"
                                   "  life 1 1 8\n"
                                   "  life 3 3 252\n"
                                   "  cohort 0 2 3 252\n"
                                   "  cohort 0 - 1 32\n"
                                   "  cohort 2 - 1 8\n"
                                   "main;c 3 48\n"
                                   "  @2 3 48\n"
                                   "  size 12 3 48\n"
                                   "  cohort 2 - 3 48\n"
                                   "main;d 4 40 3 30\n"
                                   "  @1 3 30 1 10\n"
                                   "  @2 1 10 0 0\n"
                                   "  @3 0 0 2 20\n"
                                   "  size 9 4 40\n"
                                   "  life 2 3 30\n"
                                   "  cohort 1 3 2 20\n"
                                   "  cohort 2 - 1 10\n"
                                   "main;e 2 80 1 16\n"
                                   "  @0 2 80 1 16\n"
                                   "  size 12 1 16\n"
                                   "  size 16 1 64\n"
                                   "  life 0 1 16\n"
                                   "  cohort 0 - 1 64\n"
                                   "main;f 2 30 2 30\n"
                                   "  @0 1 10 1 10\n"
                                   "  @3 1 20 1 20\n"
                                   "  size 9 1 10\n"
                                   "  size 13 1 20\n"
                                   "  life 0 1 10\n"
                                   "  life 4 1 20\n";

static void check(enum err err, const struct err_info *info)
{
    if (err != ERR_OK) {
        (void)fprintf(stderr, "recording_example: %s: %s\n", err_name(err), info->text);
        exit(1);
    }
}

static struct recording drawn(const char *text)
{
    struct recording r = {0};
    struct err_info info = {0};
    check(recording_from_text(text, &r, &info), &info);
    r.meta.state = REC_STATE_FINISHED;
    return r;
}

static struct recording large(void)
{
    struct recording r = {0};
    struct err_info info = {.text = "random"};
    check(recording_random_realistic(1, 4000, &r), &info);
    return r;
}

static struct recording wild(void)
{
    struct recording r = {0};
    struct err_info info = {.text = "random"};
    check(recording_random_wild(3, 60, &r), &info);
    return r;
}

static void write_one(struct recording r, struct recording_write_options options, const char *path)
{
    struct err_info info = {0};
    check(recording_write(&r, path, &options, &info), &info);
    recording_release(&r);
}

static void write_tiny(const char *path)
{
    write_one(drawn(tiny_text), (struct recording_write_options){.is_plain = true}, path);
}

static void write_small(const char *path)
{
    write_one(drawn(small_text), (struct recording_write_options){0}, path);
}

static void write_plain(const char *path)
{
    write_one(drawn(small_text), (struct recording_write_options){.is_plain = true}, path);
}

static void write_groups(const char *path)
{
    write_one(drawn(small_text), (struct recording_write_options){.group_count = 1}, path);
}

static void write_history(const char *path)
{
    write_one(drawn(history_text), (struct recording_write_options){.group_count = 1}, path);
}

static void write_wild(const char *path)
{
    write_one(wild(), (struct recording_write_options){0}, path);
}

static void write_large(const char *path)
{
    write_one(large(), (struct recording_write_options){.group_count = 1000}, path);
}

static void write_two(const char *path)
{
    CLEANUP(recording_writer_release) struct recording_writer w = {0};
    CLEANUP(recording_release) struct recording first = drawn(tiny_text);
    CLEANUP(recording_release) struct recording second = drawn(small_text);
    struct bytes event = {.data = (const uint8_t *)"event", .len = 5};
    struct err_info info = {0};
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    first.meta.state = REC_STATE_RUNNING;
    check(recording_writer_init(&w, fd, path, NULL, &info), &info);
    check(recording_writer_snapshot(&w, &first, &info), &info);
    check(recording_append_chunk(&w, CHUNK_TYPE('T', 'E', 'S', 'T'), event, &info), &info);
    check(recording_writer_snapshot(&w, &second, &info), &info);
    check(recording_writer_finish(&w, &info), &info);
    (void)close(fd); // everything was written through it already
}

static void write_cut(const char *path)
{
    write_groups(path);
    struct err_info info = {.text = "cannot cut"};
    check(truncate(path, 3000) == 0 ? ERR_OK : ERR_IO, &info);
}

static void print_string(const char *text)
{
    (void)putchar('"');
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        // A byte is a character of the same number, so that any bytes make valid JSON.
        (void)printf(c >= 0x20 && c < 0x7f && c != '"' && c != '\\' ? "%c" : "\\u%04x", c);
    }
    (void)putchar('"');
}

static void print_entry(const struct rec_table *table, const char *entry)
{
    (void)putchar('{');
    for (size_t i = 0; i < table->column_count; i++) {
        const char *dot = strrchr(table->columns[i].name, '.');
        (void)printf("%s\"%s\":%" PRIu64, i > 0 ? "," : "",
                     dot != NULL ? dot + 1 : table->columns[i].name,
                     rec_column_get(&table->columns[i], entry));
    }
    (void)putchar('}');
}

static void print_table(const struct rec_table *table, const struct recording *r)
{
    (void)printf(",\n\"%s\":[", table->name);
    const char *entries = table->columns != NULL ? rec_table_items(table, r) : NULL;
    size_t count = table->columns != NULL ? rec_table_count(table, r) : r->strings.count;
    for (size_t i = 0; i < count; i++) {
        (void)fputs(i > 0 ? ",\n" : "", stdout);
        if (entries != NULL) {
            print_entry(table, entries + i * table->entry_bytes);
        } else {
            print_string(rec_string_get(r, (rec_string)i));
        }
    }
    (void)putchar(']');
}

static int read_file(const char *path)
{
    CLEANUP(recording_release) struct recording r = {0};
    struct recording_open_result result = {0};
    struct err_info info = {0};
    check(recording_open(path, &r, &result, &info), &info);
    (void)printf("{\"generation\":%" PRIu32 ",\"complete\":%s", result.generation,
                 result.condition == RECORDING_COMPLETE ? "true" : "false");
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        print_table(&rec_tables[i], &r);
    }
    (void)puts("}");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *kind;
        void (*write)(const char *path);
    } kinds[] = {{"tiny", write_tiny},       {"small", write_small}, {"plain", write_plain},
                 {"groups", write_groups},   {"two", write_two},     {"cut", write_cut},
                 {"history", write_history}, {"wild", write_wild},   {"large", write_large}};
    if (argc == 3 && strcmp(argv[1], "read") == 0) {
        return read_file(argv[2]);
    }
    for (size_t i = 0; argc == 4 && i < ARRAY_LEN(kinds); i++) {
        if (strcmp(argv[2], kinds[i].kind) == 0) {
            kinds[i].write(argv[3]);
            return 0;
        }
    }
    (void)fputs("usage: recording_example write KIND FILE | read FILE\n", stderr);
    return 2;
}
