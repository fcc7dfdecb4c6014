// SPDX-License-Identifier: MIT
// A dump in the form of linux/tools/perf/Documentation/jitdump-specification.txt: whole, truncated
// at each byte, and with wrong lengths.
#include "symbols/jit/jit_dump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/test_support/open_files.h"
#include "host/text/strbuf.h"

static void put(struct strbuf *out, uint64_t value, size_t size)
{
    strbuf_append(out, &value, size);
}

static void put_header(struct strbuf *out)
{
    put(out, 0x4a695444, 4); // "JiTD"
    put(out, 1, 4);          // version
    put(out, 40, 4);
    put(out, 62, 4); // x86-64
    put(out, 0, 4);
    put(out, 77, 4); // pid
    put(out, 0, 8);
    put(out, 0, 8);
}

static void put_load(struct strbuf *out, uint64_t address, uint64_t size, const char *name)
{
    const size_t len = strlen(name) + 1;
    put(out, 0, 4);
    put(out, 16 + 40 + len + size, 4);
    put(out, 0, 8);
    put(out, 77, 4);
    put(out, 77, 4);
    put(out, address, 8);
    put(out, address, 8);
    put(out, size, 8);
    put(out, 1, 8);
    strbuf_append(out, name, len);
    for (uint64_t i = 0; i < size; i++) {
        strbuf_append_char(out, '\xc3');
    }
}

static void put_move(struct strbuf *out, uint64_t from, uint64_t to, uint64_t size)
{
    put(out, 1, 4);
    put(out, 16 + 48, 4);
    put(out, 0, 8);
    put(out, 77, 4);
    put(out, 77, 4);
    put(out, to, 8);
    put(out, from, 8);
    put(out, to, 8);
    put(out, size, 8);
    put(out, 1, 8);
}

static void make(struct strbuf *out)
{
    put_header(out);
    put_load(out, 0x1000, 16, "first");
    put(out, 2, 4); // debug information, which is skipped
    put(out, 16, 4);
    put(out, 0, 8);
    put_load(out, 0x2000, 32, "second");
    put_move(out, 0x1000, 0x3000, 16);
    put_load(out, 0x1000, 8, "third");
}

static void code_is_found_where_it_lay_last(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf file = {0};
    CLEANUP(jit_map_release) struct jit_map map = {0};
    make(&file);
    assert_int_equal(jit_dump_parse(strbuf_bytes(&file), &map), ERR_OK);
    assert_int_equal(jit_map_seal(&map), ERR_OK);
    static const struct {
        uint64_t pc;
        const char *name;
    } cases[] = {{0xfff, NULL},      {0x1000, "third"},  {0x1007, "third"}, {0x1008, "first"},
                 {0x2000, "second"}, {0x201f, "second"}, {0x2020, NULL},    {0x300f, "first"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *name = jit_map_find(&map, cases[i].pc);
        assert_string_equal(name != NULL ? name : "", cases[i].name != NULL ? cases[i].name : "");
    }
}

// A name of one letter is one. A name without its zero, or of no letter, is none, and does not take
// the letters of the record behind it.
static void a_name_ends_in_its_record(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t len; // with the zero, if any
        const char *wanted;
    } cases[] = {{"x", 2, "x"}, {"", 1, ""}, {"open", 4, ""}, {"open", 5, "open"}, {"", 0, ""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf file = {0};
        CLEANUP(strbuf_release) struct strbuf whole = {0};
        CLEANUP(jit_map_release) struct jit_map map = {0};
        make(&whole);
        strbuf_append(&file, whole.data, 40); // the header
        put(&file, 0, 4);
        put(&file, 16 + 40 + cases[i].len, 4);
        put(&file, 0, 8);
        put(&file, 0, 8);
        put(&file, 0x5000, 8);
        put(&file, 0x5000, 8);
        put(&file, 16, 8);
        put(&file, 1, 8);
        strbuf_append(&file, cases[i].name, cases[i].len);
        put_load(&file, 0x6000, 8, "next");
        assert_int_equal(jit_dump_parse(strbuf_bytes(&file), &map), ERR_OK);
        assert_int_equal(jit_map_seal(&map), ERR_OK);
        const char *name = jit_map_find(&map, 0x5008);
        assert_string_equal(name != NULL ? name : "", cases[i].wanted);
        assert_string_equal(jit_map_find(&map, 0x6000), "next");
    }
}

static void damage_costs_no_more_than_what_follows(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf file = {0};
    make(&file);
    for (size_t len = 0; len <= file.len; len++) {
        CLEANUP(jit_map_release) struct jit_map map = {0};
        const struct bytes cut = {(const uint8_t *)file.data, len};
        assert_int_equal(jit_dump_parse(cut, &map), len < 40 ? ERR_CORRUPT : ERR_OK);
        assert_int_equal(jit_map_seal(&map), ERR_OK);
    }
    for (size_t at = 0; at < file.len; at++) {
        CLEANUP(jit_map_release) struct jit_map map = {0};
        const char was = file.data[at];
        file.data[at] = '\xff';
        const enum err result = jit_dump_parse(strbuf_bytes(&file), &map);
        assert_true(result == ERR_OK || result == ERR_CORRUPT);
        assert_int_equal(jit_map_seal(&map), ERR_OK);
        (void)jit_map_find(&map, 0x1000);
        file.data[at] = was;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_found_where_it_lay_last),
        cmocka_unit_test(a_name_ends_in_its_record),
        cmocka_unit_test(damage_costs_no_more_than_what_follows),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
