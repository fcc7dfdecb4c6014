// SPDX-License-Identifier: MIT
// unpacked: windows, lines and limits, of plain and of packed files. packed_stream packs the inputs
// with zlib and zstd.
#include "formats/import/unpacked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "formats/codec/packed_stream.h"
#include "formats/test_support/unpacked_bytes.h"

enum {
    LINE_MAX_BYTES = 16 << 20, // with its line feed
    PLAIN = -1,
};

#define ONE_MIB ((uint64_t)1 << 20)

static const int packings[] = {PLAIN, PACKING_GZIP, PACKING_ZSTD};

// Make a file of `count` times `of`, and then `last`.
static struct bytes filled(struct strbuf *text, char of, size_t count, const char *last)
{
    char part[4096];
    memset(part, of, sizeof(part));
    for (size_t left = count; left > 0;) {
        const size_t now = left < sizeof(part) ? left : sizeof(part);
        strbuf_append(text, part, now);
        left -= now;
    }
    strbuf_append_text(text, last);
    assert_int_equal(strbuf_result(text), ERR_OK);
    return (struct bytes){.data = (const uint8_t *)text->data, .len = text->len};
}

// Return `plain` in `packing`. The caller frees *out_text.
static struct bytes packed(int packing, struct bytes plain, char **out_text)
{
    size_t len = 0;
    *out_text = NULL;
    if (packing == PLAIN) {
        return plain;
    }
    FILE *out = open_memstream(out_text, &len);
    assert_non_null(out);
    struct packed_stream stream;
    assert_int_equal(packed_stream_init(&stream, (enum packing)packing, out), ERR_OK);
    packed_stream_write(&stream, plain);
    assert_int_equal(packed_stream_finish(&stream), ERR_OK);
    packed_stream_release(&stream);
    assert_int_equal(fclose(out), 0);
    return (struct bytes){.data = (const uint8_t *)*out_text, .len = len};
}

static void a_line_has_a_limit(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        const char *end;
        enum err wanted;
    } cases[] = {
        {0, "\n", ERR_OK},
        {(256 << 10) - 1, "\n", ERR_OK}, // the first window
        {256 << 10, "\n", ERR_OK},
        {(256 << 10) + 1, "", ERR_OK},
        {LINE_MAX_BYTES - 1, "\n", ERR_OK},
        {LINE_MAX_BYTES - 1, "", ERR_OK},
        {LINE_MAX_BYTES, "\n", ERR_LIMIT},
        {LINE_MAX_BYTES, "", ERR_LIMIT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        const struct bytes file = filled(&text, 'x', cases[i].len, cases[i].end);
        CLEANUP(unpacked_release) struct unpacked u = {0};
        struct err_info info = {0};
        struct bytes line = {0};
        assert_int_equal(unpacked_open_bytes(&u, file, "some file", &info), ERR_OK);
        assert_int_equal(unpacked_line(&u, &line, &info), cases[i].wanted);
        if (cases[i].wanted == ERR_LIMIT) {
            assert_string_equal(info.text, "'some file', line 1: longer than 16 MiB");
            continue;
        }
        const bool is_cut = cases[i].end[0] == '\0';
        assert_int_equal(line.len, cases[i].len);
        assert_int_equal(line.data[line.len], '\n');
        assert_int_equal(u.is_line_cut, is_cut);
        assert_int_equal(u.is_cut, is_cut);
        assert_int_equal(u.line_number, 1);
        assert_int_equal(u.offset, file.len);
        assert_int_equal(unpacked_line(&u, &line, &info), ERR_NOT_FOUND);
        assert_int_equal(u.line_number, 1);
    }
}

// Two lines, repeated, so that they cross the ends of windows at many places.
static void lines_are_the_same_in_each_packing(void **state)
{
    (void)state;
    enum {
        LINES = 40000
    };
    CLEANUP(strbuf_release) struct strbuf text = {0};
    for (uint32_t i = 0; i < LINES; i++) {
        strbuf_printf(&text, "%u%s\n", i, i % 2 == 0 ? "" : " and a few words more");
    }
    const struct bytes plain = {.data = (const uint8_t *)text.data, .len = text.len};
    for (size_t i = 0; i < ARRAY_LEN(packings); i++) {
        char *memory;
        const struct bytes file = packed(packings[i], plain, &memory);
        CLEANUP(unpacked_release) struct unpacked u = {0};
        struct bytes line;
        assert_int_equal(unpacked_open_bytes(&u, file, "f", NULL), ERR_OK);
        assert_int_equal(u.file_bytes, file.len);
        const char *wanted = text.data;
        for (uint32_t at = 0; at < LINES; at++) {
            assert_int_equal(u.offset, (uint64_t)(wanted - text.data));
            assert_int_equal(unpacked_line(&u, &line, NULL), ERR_OK);
            assert_int_equal(line.len, strcspn(wanted, "\n"));
            assert_memory_equal(line.data, wanted, line.len);
            assert_int_equal(u.line_number, at + 1);
            wanted += line.len + 1;
        }
        assert_int_equal(unpacked_line(&u, &line, NULL), ERR_NOT_FOUND);
        assert_false(u.is_cut);
        free(memory);
    }
}

static void all_of_it_has_the_limit_of_its_caller(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    const struct bytes plain = filled(&text, 'y', 3 * ONE_MIB - 3, "end");
    static const struct {
        uint64_t max_bytes;
        enum err wanted;
    } cases[] = {{3 * ONE_MIB + 1, ERR_OK}, {3 * ONE_MIB, ERR_OK}, {3 * ONE_MIB - 1, ERR_LIMIT}};
    for (size_t i = 0; i < ARRAY_LEN(packings) * ARRAY_LEN(cases); i++) {
        const uint64_t max_bytes = cases[i % ARRAY_LEN(cases)].max_bytes;
        char *memory;
        const struct bytes file = packed(packings[i / ARRAY_LEN(cases)], plain, &memory);
        CLEANUP(unpacked_release) struct unpacked u = {0};
        CLEANUP(strbuf_release) struct strbuf out = {0};
        struct err_info info = {0};
        struct bytes head;
        assert_int_equal(unpacked_open_bytes(&u, file, "f", &info), ERR_OK);
        assert_int_equal(unpacked_peek(&u, 7, &head, &info), ERR_OK);
        assert_int_equal(head.len, 7);
        assert_memory_equal(head.data, "yyyyyyy", 7);
        assert_int_equal(unpacked_all(&u, max_bytes, &out, &info),
                         cases[i % ARRAY_LEN(cases)].wanted);
        if (cases[i % ARRAY_LEN(cases)].wanted == ERR_OK) {
            assert_int_equal(out.len, plain.len);
            assert_memory_equal(out.data, plain.data, plain.len);
            assert_int_equal(u.offset, plain.len);
        } else {
            assert_string_equal(info.text, "'f' unpacks to more than the 2 MiB that a file of its "
                                           "size and kind may");
        }
        free(memory);
    }
}

// Requests for the file's beginning, and the bytes that exist.
static void a_look_takes_nothing_away(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        size_t want;
        size_t there;
    } cases[] = {{"", 1, 0}, {"a", 0, 0}, {"ab", 1, 1}, {"ab", 2, 2}, {"ab", 3, 2}, {"\n", 1, 1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const size_t len = strlen(cases[i].file);
        CLEANUP(unpacked_release) struct unpacked u = {0};
        struct bytes seen;
        assert_int_equal(
            unpacked_open_bytes(
                &u, (struct bytes){.data = (const uint8_t *)cases[i].file, .len = len}, "f", NULL),
            ERR_OK);
        for (uint32_t again = 0; again < 2; again++) {
            assert_int_equal(unpacked_peek(&u, cases[i].want, &seen, NULL), ERR_OK);
            assert_int_equal(seen.len, cases[i].there);
            assert_memory_equal(seen.data, cases[i].file, seen.len);
        }
        assert_int_equal(u.offset, 0);
        CLEANUP(strbuf_release) struct strbuf all = {0};
        assert_int_equal(unpacked_all(&u, len, &all, NULL), ERR_OK);
        assert_int_equal(all.len, len);
    }
}

// Several members are one file. A file that ends within a member is truncated, at every byte.
static void members_follow_each_other_and_may_be_cut(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    for (uint32_t i = 0; i < 200; i++) {
        strbuf_printf(&text, "%u\n", i * i);
    }
    const struct bytes plain = {.data = (const uint8_t *)text.data, .len = text.len};
    for (size_t i = 1; i < ARRAY_LEN(packings); i++) {
        char *memory;
        const struct bytes file = packed(packings[i], plain, &memory);
        CLEANUP(strbuf_release) struct strbuf twice = {0};
        strbuf_append(&twice, memory, file.len);
        strbuf_append(&twice, memory, file.len);
        for (size_t len = 4; len <= twice.len; len++) {
            CLEANUP(unpacked_release) struct unpacked u = {0};
            CLEANUP(strbuf_release) struct strbuf all = {0};
            const struct bytes some = {.data = (const uint8_t *)twice.data, .len = len};
            assert_int_equal(unpacked_open_bytes(&u, some, "f", NULL), ERR_OK);
            assert_int_equal(unpacked_all(&u, 2 * plain.len, &all, NULL), ERR_OK);
            const bool is_whole = len == file.len || len == twice.len;
            assert_int_equal(u.is_cut, !is_whole);
            if (is_whole) {
                assert_int_equal(all.len, len / file.len * plain.len);
            }
        }
        free(memory);
    }
}

// Count the open files with the one of unpacked_bytes.h, which stays open.
static int note_files(void **state)
{
    CLEANUP(unpacked_release) struct unpacked u = {0};
    return unpacked_open_bytes(&u, (struct bytes){0}, "f", NULL) == ERR_OK ? open_files_note(state)
                                                                           : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_a_limit),
        cmocka_unit_test(lines_are_the_same_in_each_packing),
        cmocka_unit_test(all_of_it_has_the_limit_of_its_caller),
        cmocka_unit_test(a_look_takes_nothing_away),
        cmocka_unit_test(members_follow_each_other_and_may_be_cut),
    };
    return cmocka_run_group_tests(tests, note_files, open_files_expect);
}
