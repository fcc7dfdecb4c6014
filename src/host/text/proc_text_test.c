// SPDX-License-Identifier: MIT
#include "host/text/proc_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/compiler.h"

static void the_innermost_pid_is_the_last_of_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t pid;
    } cases[] = {
        {"Name:\tcat\nPid:\t7\nNSpid:\t7\nNSpgid:\t8\n", 7},
        {"NSpid:\t4711\t12\t1\nNSpgid:\t4711\t12\t9\n", 1},
        {"NSpid:\t4711\t12", 12},
        {"NSpid:\n12\n", 0},
        {"NSpid:", 0},
        {"Name:\tNSpid:\\n1\nPid:\t7\n", 0}, // names are escaped: proc(5)
        {"NSpid:\tx\n", 0},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(proc_text_innermost_pid(cases[i].text), cases[i].pid);
    }
}

static void a_mask_is_hexadecimal_behind_a_tab(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t mask;
    } cases[] = {
        {"CapPrm:\t0\nCapEff:\t00000000a80425fb\nCapBnd:\t1\n", 0xa80425fb},
        {"CapEff:\t000001ffffffffff", 0x1ffffffffff},
        {"CapEff: 10\n", 0x10},
        {"CapEff:\nCapBnd:\t1\n", 0},
        {"CapEff:\tg\n", 0},
        {"Name:\tCapEff:\n", 0},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(proc_text_mask(cases[i].text, "CapEff"), cases[i].mask);
    }
}

static void the_state_follows_the_name(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        char state;
    } cases[] = {
        {"18 (a) R 1", 'R'}, {"18 (a) D 1", 'D'}, // waits for a disk
        {"18 (a) S 1", 'S'}, {"18 (a) Z 1", 'Z'},    {"18 (a) T 1", 'T'},
        {"18 (a) t 1", 't'}, {"18 (a) R) S 1", 'S'}, // a strange name
        {"18 (a)", 'X'},     {"18 (a) ", 'X'},       {"", 'X'},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("%s\n", cases[i].text);
        assert_int_equal(proc_text_state(cases[i].text), cases[i].state);
    }
}

static void the_stack_begins_at_field_28(void **state)
{
    (void)state;
    static const char before[] =
        "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"
        " 24";
    static const struct {
        const char *after;
        uint64_t top;
    } cases[] = {
        {" 140730000000000 30 31\n", 140730000000000},
        {" 0 30", 0},
        {" x 30", 0},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[256];
        assert_true(snprintf(text, sizeof(text), "%s%s", before, cases[i].after) <
                    (int)sizeof(text));
        assert_int_equal(proc_text_stack_top(text), cases[i].top);
    }
    assert_int_equal(proc_text_stack_top(""), 0);
}

// Code, data, stack and arguments: whatever is elsewhere is another image.
static void an_image_is_where_its_parts_are(void **state)
{
    (void)state;
    static const char form[] =
        "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 "
        "%d %d %d 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 %d 46 47 %d 49";
    static const int places[][5] = {
        {26, 27, 28, 45, 48}, {6, 27, 28, 45, 48}, {26, 7, 28, 45, 48},
        {26, 27, 8, 45, 48},  {26, 27, 28, 5, 48}, {26, 27, 28, 45, 49},
    };
    uint64_t images[ARRAY_LEN(places)];
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char text[256];
        const int *p = places[i];
        assert_true(snprintf(text, sizeof(text), form, p[0], p[1], p[2], p[3], p[4]) <
                    (int)sizeof(text));
        images[i] = proc_text_image(text);
        assert_int_not_equal(images[i], 0);
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(images[i], images[k]);
        }
    }
    assert_int_equal(proc_text_image("7 (a) S 1 2"), 0);
}

static void a_sleeping_thread_has_a_stack_pointer(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t pointer;
    } cases[] = {
        {"202 0x7f0 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe0010 0x7f8c\n", 0x7ffe0010},
        {"-1 0x7ffe0020 0x7f8c\n", 0x7ffe0020}, // not in a call of the kernel
        {"running\n", 0},
        {"0x1 0x2", 0},
        {"-1 0x", 0},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(proc_text_stack_pointer(cases[i].text), cases[i].pointer);
    }
}

static void the_environment_ends_at_field_51(void **state)
{
    (void)state;
    static const char before[] = "7 (a) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 "
                                 "25 26 27 28 29 30 31 32 33"
                                 " 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50";
    char text[256];
    assert_true(snprintf(text, sizeof(text), "%s 140730000000000 0\n", before) < (int)sizeof(text));
    assert_int_equal(proc_text_environment_end(text), 140730000000000);
    assert_true(snprintf(text, sizeof(text), "%s 0 0\n", before) < (int)sizeof(text));
    assert_int_equal(proc_text_environment_end(text), 0);
    assert_int_equal(proc_text_environment_end(before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_innermost_pid_is_the_last_of_its_line),
        cmocka_unit_test(a_mask_is_hexadecimal_behind_a_tab),
        cmocka_unit_test(the_state_follows_the_name),
        cmocka_unit_test(the_stack_begins_at_field_28),
        cmocka_unit_test(an_image_is_where_its_parts_are),
        cmocka_unit_test(a_sleeping_thread_has_a_stack_pointer),
        cmocka_unit_test(the_environment_ends_at_field_51),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
