// SPDX-License-Identifier: MIT
// Makes objects in the form of CPython 3.11's and 3.10's, and asks for the pcs and names of their
// code: equal and replaced ones, texts of all widths, pointers that lead nowhere, and more code
// than has room.
#include "target/preload/python/python_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "target/preload/python/python_memory.h"
#include "target/preload/python/test_support/python_objects.h"

static uint32_t g_version = 0x030b;

static const struct python_layout *layout(void)
{
    return python_layout_of(g_version);
}

static void make_code(
    struct python_code_object *o, const char *name, uint64_t hash, const char *file, uint32_t line)
{
    python_make_code(layout(), o, name, hash, file, line);
}

static uint64_t pc_of(const struct python_code_object *o, int64_t unit)
{
    uint64_t frame[64];
    memset(frame, 0xa5, sizeof(frame));
    python_put_instruction(layout(), frame, o, unit);
    struct python_code_facts facts;
    return python_code_read(layout(), (uint64_t)&o->code, &facts)
               ? python_code_pc(layout(), &facts,
                                python_word((uint64_t)frame + layout()->frame.instruction))
               : 0;
}

static void assert_named(uint64_t pc, const char *path, uint64_t line)
{
    struct unwind_module module;
    assert_true(python_code_module(pc, &module));
    assert_string_equal(module.path, path);
    assert_int_equal(pc - module.bias - 1, line);
    assert_true(pc - 1 >= module.start && pc < module.end);
}

static void a_frame_has_name_file_and_line(void **state)
{
    (void)state;
    struct python_code_object o;
    make_code(&o, "Box.fill", 1, "/srv/app.py", 40);
    assert_named(pc_of(&o, -1),
                 "[python] Box.fill:/"
                 "/srv/app.py",
                 40); // has not begun
    assert_named(pc_of(&o, 0),
                 "[python] Box.fill:/"
                 "/srv/app.py",
                 40);
    assert_named(pc_of(&o, 1),
                 "[python] Box.fill:/"
                 "/srv/app.py",
                 40);
    assert_named(pc_of(&o, 2),
                 "[python] Box.fill:/"
                 "/srv/app.py",
                 41);
    assert_int_equal(pc_of(&o, 2), pc_of(&o, 2));
}

static void replaced_code_has_another_number(void **state)
{
    (void)state;
    struct python_code_object o;
    make_code(&o, "one", 1, "<string>", 1);
    const uint64_t one = pc_of(&o, 0);
    make_code(&o, "two", 2, "<string>", 1);
    const uint64_t two = pc_of(&o, 0);
    make_code(&o, "two", 2, "<strong>", 1);
    python_put(&o.lines, layout()->bytes.data + 3, 0x80 | 12 << 3, 1); // other lines
    const uint64_t other_lines = pc_of(&o, 2);
    assert_named(one, "[python] one:/<string>", 1);
    assert_named(two, "[python] two:/<string>", 1);
    assert_named(other_lines, "[python] two:/<strong>", 3);
    make_code(&o, "one", 1, "<string>", 1);
    assert_int_equal(pc_of(&o, 0), one);
}

static void texts_of_all_widths_are_utf8(void **state)
{
    (void)state;
    static const struct {
        uint32_t width;
        uint32_t characters[3];
        const char *text;
    } cases[] = {
        {1, {'g', 0xf6, 0xff}, "g\u00f6\u00ff"},
        {2, {'n', 0x540d, 0x7ff}, "n\u540d\u07ff"},
        {4, {0x1f600, 0, 0x10ffff}, "\U0001f600?\U0010ffff"},
        {4, {0x110000, 'x', 0xffffffff}, "?x?"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct python_code_object o;
        make_code(&o, "", 100 + i, "f.py", 1);
        python_put(&o.name, layout()->text.length, 3, 8);
        python_put(&o.name, layout()->text.state,
                   PYTHON_STATE_WIDE | cases[i].width << PYTHON_KIND_SHIFT, 4);
        for (size_t k = 0; k < 3; k++) {
            python_put(&o.name, layout()->text.other_data + k * cases[i].width,
                       cases[i].characters[k], cases[i].width);
        }
        char path[64];
        (void)snprintf(path, sizeof(path), "[python] %s:/f.py", cases[i].text);
        assert_named(pc_of(&o, 0), path, 1);
    }
}

static void pointers_that_lead_nowhere_give_no_frame(void **state)
{
    (void)state;
    const uint16_t places[] = {layout()->code.name, layout()->code.file, layout()->code.lines};
    const uint64_t wrong[] = {0, 8, 0x5079000000000008, UINT64_MAX - 15};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct python_code_facts facts;
        assert_false(python_code_read(layout(), wrong[i], &facts));
        for (size_t k = 0; k < ARRAY_LEN(places); k++) {
            struct python_code_object o;
            make_code(&o, "f", 1, "f.py", 1);
            python_put(&o.code, places[k], wrong[i], 8);
            assert_int_equal(pc_of(&o, 0), 0);
        }
    }
    struct python_code_object o;
    make_code(&o, "f", 1, "f.py", 1);
    python_put(&o.lines, layout()->bytes.size, UINT64_MAX, 8);
    assert_int_equal(pc_of(&o, 0), 0);
    struct unwind_module module;
    assert_false(python_code_module(0, &module));
    assert_false(python_code_module(PYTHON_CODE_BASE, &module)); // the first is one further
    assert_false(python_code_module((uint64_t)&o, &module));
    assert_false(
        python_code_module(PYTHON_CODE_BASE + PYTHON_CODES_MAX * PYTHON_CODE_LINES + 1, &module));
}

static void python_3_10_counts_its_instructions(void **state)
{
    g_version = 0x030a;
    a_frame_has_name_file_and_line(state);
    pointers_that_lead_nowhere_give_no_frame(state);
    g_version = 0x030b;
}

static void code_without_room_shares_a_name(void **state)
{
    (void)state;
    struct python_code_object o;
    struct unwind_module module;
    for (uint32_t i = 0; i < 2 * PYTHON_CODES_MAX; i++) {
        make_code(&o, "many", 1000 + i, "f.py", 1);
        assert_true(python_code_module(pc_of(&o, 0), &module));
    }
    assert_named(pc_of(&o, 0), "[python] (further functions):/", 0);
}

static int prepare(void **state)
{
    (void)state;
    return python_code_prepare() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_has_name_file_and_line),
        cmocka_unit_test(python_3_10_counts_its_instructions),
        cmocka_unit_test(replaced_code_has_another_number),
        cmocka_unit_test(texts_of_all_widths_are_utf8),
        cmocka_unit_test(pointers_that_lead_nowhere_give_no_frame),
        cmocka_unit_test(code_without_room_shares_a_name),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
