// SPDX-License-Identifier: MIT
// Places in foreign profiles: Valgrind's texts (valgrind_place), maps of processes (mapped_files).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "formats/import/foreign_places.h"

static struct bytes text_of(const char *text)
{
    return (struct bytes){.data = (const uint8_t *)text, .len = strlen(text)};
}

static void each_part_of_a_place_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t offset;
        const char *function;
        const char *file;
        uint32_t line;
        const char *module; // NULL: none
    } cases[] = {
        {"0x10A2FA: main (t.cpp:10)", 0x10a2fa, "main", "t.cpp", 10, NULL},
        {"0x1: f (a:1)", 1, "f", "a", 1, NULL},
        {"0x4F2: ??? (in /lib/x.so)", 0x4f2, "", "", 0, "/lib/x.so"},
        {"0x4F2: grow (in /lib/x.so)", 0x4f2, "grow", "", 0, "/lib/x.so"},
        {"0xFFFFFFFFFFFFFFFF: f (a:1)", UINT64_MAX, "f", "a", 1, NULL},
        {"0x10000000000000000: f (a:1)", 0, "0x10000000000000000: f", "a", 1, NULL},
        {"0x: f (a:1)", 0, "0x: f", "a", 1, NULL},
        {"0x12 f (a:1)", 0, "0x12 f", "a", 1, NULL},
        {"0x12:f (a:1)", 0, "0x12:f", "a", 1, NULL},
        {"main (t.cpp:10)", 0, "main", "t.cpp", 10, NULL},
        {"0x1: operator()(int) (t.cpp:3)", 1, "operator()(int)", "t.cpp", 3, NULL},
        {"0x1: f (a b.c:7)", 1, "f", "a b.c", 7, NULL},
        {"0x1: f (t.cpp)", 1, "f", "t.cpp", 0, NULL},
        {"0x1: f (t.cpp:)", 1, "f", "t.cpp:", 0, NULL},
        {"0x1: f (123)", 1, "f", "123", 0, NULL},
        {"0x1: f (:12)", 1, "f", "", 12, NULL},
        {"0x1: f (a:999999999)", 1, "f", "a", 999999999, NULL},
        {"0x1: f (a:1000000000)", 1, "f", "a:1000000000", 0, NULL},
        {"0x1: f (a:1", 1, "f (a:1", "", 0, NULL},
        {"0x1: f(a:1)", 1, "f(a:1)", "", 0, NULL},
        {"0x1: g ()", 1, "g", "", 0, NULL},
        {"(heap functions)", 0, "(heap functions)", "", 0, NULL},
        {"f )", 0, "f )", "", 0, NULL},
        {"x", 0, "x", "", 0, NULL},
    };
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    CLEANUP(map_u64_release) struct map_u64 places = {0};
    struct import import = {.b = &b};
    assert_int_equal(recording_builder_init(&b), ERR_OK);
    const size_t first_frames = b.frames.len;
    const size_t first_modules = b.modules.len;
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) { // in the second round each is known
        const size_t at = i % ARRAY_LEN(cases);
        const uint32_t number = valgrind_place_frame(&places, &import, text_of(cases[at].text));
        print_message("%s\n", cases[at].text);
        assert_int_equal(number, first_frames + at);
        const struct rec_frame *frame = b.frames.items + number;
        assert_int_equal(frame->offset, cases[at].offset);
        assert_int_equal(frame->flags, REC_FRAME_EXACT_PC | REC_FRAME_LOADED);
        assert_int_equal(frame->symbol_count,
                         cases[at].function[0] != '\0' || cases[at].file[0] != '\0');
        if (frame->symbol_count > 0) {
            const struct rec_symbol *symbol = b.symbols.items + frame->symbol_first;
            assert_string_equal(string_table_get(&b.strings, symbol->function), cases[at].function);
            assert_string_equal(string_table_get(&b.strings, symbol->file), cases[at].file);
            assert_int_equal(symbol->line, cases[at].line);
        }
        assert_int_equal(frame->module == REC_NONE, cases[at].module == NULL);
        if (cases[at].module != NULL) {
            assert_string_equal(string_table_get(&b.strings, b.modules.items[frame->module].path),
                                cases[at].module);
        }
    }
    assert_int_equal(b.modules.len, first_modules + 1);
}

static void add(struct mapped_file_vec *files,
                struct import *import,
                const char *path,
                uint64_t start,
                uint64_t end,
                uint64_t offset)
{
    const struct mapped_file range = {.start = start, .end = end};
    mapped_files_add(files, import, text_of(path), range, offset);
}

static void addresses_belong_to_the_call_before_them(void **state)
{
    (void)state;
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    CLEANUP(mapped_file_vec_release) struct mapped_file_vec files = {0};
    struct import import = {.b = &b};
    assert_int_equal(recording_builder_init(&b), ERR_OK);
    assert_null(mapped_files_find(&files, 1));
    add(&files, &import, "/lib/b.so", 0x7f0000002000, 0x7f0000003000, 0);
    add(&files, &import, "/lib/b.so", 0x7f0000003000, 0x7f0000004000, 0x1000); // continued
    add(&files, &import, "/lib/b.so", 0x7f0000008000, 0x7f0000009000, 0);      // again
    add(&files, &import, "/lib/c.so", 0x7f000000b000, 0x7f000000c000, 0x1000); // from its middle
    add(&files, &import, "", 0x7f0000005000, 0x7f0000006000, 0);               // no file
    add(&files, &import, "/bin/fixed", 0x400000, 0x401000, 0);
    add(&files, &import, "/bin/high", 0x10000000, 0x10001000, 0);
    add(&files, &import, "/bin/low", 0xffff000, 0x10000000, 0);
    mapped_files_sort(&files);
    static const struct {
        uint64_t address;
        const char *path; // NULL: no mapping
        uint64_t base;
    } cases[] = {
        {0, NULL, 0},
        {0x400000, NULL, 0},
        {0x400001, "/bin/fixed", 0},
        {0x401000, "/bin/fixed", 0},
        {0x401001, NULL, 0},
        {0x10000000, "/bin/low", 0},
        {0x10000001, "/bin/high", 0x10000000},
        {0x7f0000002000, NULL, 0},
        {0x7f0000002001, "/lib/b.so", 0x7f0000002000},
        {0x7f0000003000, "/lib/b.so", 0x7f0000002000},
        {0x7f0000003001, "/lib/b.so", 0x7f0000002000},
        {0x7f0000004000, "/lib/b.so", 0x7f0000002000},
        {0x7f0000004001, NULL, 0},
        {0x7f0000005001, "", 0x7f0000005000},
        {0x7f0000008001, "/lib/b.so", 0x7f0000008000},
        {0x7f000000b001, "/lib/c.so", 0x7f000000a000},
        {0x7f000000c000, "/lib/c.so", 0x7f000000a000},
        {0x7f000000c001, NULL, 0},
        {UINT64_MAX, NULL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct mapped_file *found = mapped_files_find(&files, cases[i].address);
        print_message("case %zu\n", i);
        assert_int_equal(found == NULL, cases[i].path == NULL);
        if (found == NULL) {
            continue;
        }
        assert_int_equal(found->base, cases[i].base);
        assert_int_equal(found->module == REC_NONE, cases[i].path[0] == '\0');
        if (found->module != REC_NONE) {
            assert_string_equal(string_table_get(&b.strings, b.modules.items[found->module].path),
                                cases[i].path);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_of_a_place_is_found),
        cmocka_unit_test(addresses_belong_to_the_call_before_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
