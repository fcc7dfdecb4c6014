// SPDX-License-Identifier: MIT
// Tests of renamed functions: two drawn recordings, and the pairs that they have.
#include "profile/compare/renames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/text/strbuf.h"
#include "profile/compare/diff.h"
#include "profile/test_support/drawn_profile.h"

struct pair {
    struct drawn_profile sides[SIDE_COUNT];
    struct code_union code;
};

static void pair_release(struct pair *pair)
{
    code_union_release(&pair->code);
    drawn_profile_release(&pair->sides[SIDE_OLD]);
    drawn_profile_release(&pair->sides[SIDE_NEW]);
}

static void open_pair(const char *old, const char *new, struct pair *out)
{
    drawn_profile_open(new, &out->sides[SIDE_NEW]);
    drawn_profile_open(old, &out->sides[SIDE_OLD]);
    assert_int_equal(
        code_union_build(out->sides[SIDE_NEW].profile, out->sides[SIDE_OLD].profile, &out->code),
        ERR_OK);
}

// List the pairs as "old>new ".
static void find(struct pair *pair, struct strbuf *out)
{
    assert_int_equal(renames_find(&pair->code), ERR_OK);
    for (size_t i = 0; i < pair->code.renames.len; i++) {
        strbuf_printf(out, "%s>", code_union_name(&pair->code, pair->code.renames.items[i].from));
        strbuf_printf(out, "%s ", code_union_name(&pair->code, pair->code.renames.items[i].to));
    }
}

static void functions_of_the_same_figures_are_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *old;
        const char *new;
        const char *said;
    } cases[] = {
        {"a call site", "main;f 5 50\nmain;g 1 1\n", "main;h 5 50\nmain;g 1 1\n", "f>h "},
        {"other frees do not matter", "main;f 5 50 5 50\n", "main;h 5 50 1 10\n", "f>h "},
        {"other calls", "main;f 5 50\n", "main;h 6 50\n", ""},
        {"other bytes", "main;f 5 50\n", "main;h 5 51\n", ""},
        {"another caller", "main;a;f 5 50\nmain;b;g 1 1\n", "main;a;x 1 1\nmain;b;h 5 50\n", ""},
        {"it exists in both", "main;f 5 50\n", "main;h 5 50\nmain;f 1 1\n", ""},
        {"either of two", "main;f 5 50\n", "main;h 5 50\nmain;i 5 50\n", ""},
        {"one of two", "main;f 5 50\nmain;g 5 50\n", "main;h 5 50\n", ""},
        {"below two callers", "main;a;f 5 50\nmain;b;f 2 9\n", "main;b;h 2 9\nmain;a;h 5 50\n",
         "f>h "},
        {"below one of two callers", "main;a;f 5 50\nmain;b;f 2 9\nmain;a 1 1\nmain;b 1 1\n",
         "main;a;h 5 50\nmain;b 1 1\nmain;a 1 1\n", ""},
        {"a caller", "main;f;g 5 50\nmain;f 1 1\n", "main;h;g 5 50\nmain;h 1 1\n", "f>h "},
        {"a caller and what it calls", "main;f;g 5 50\nmain;f;x 2 3\nmain;g;y 2 3\n",
         "main;h;g 5 50\nmain;h;z 2 3\nmain;g;y 2 3\n", "f>h x>z "},
        {"recursion", "main;f 1 1\nmain;f;f 1 1\n", "main;h 1 1\nmain;h;h 1 1\n", "f>h "},
        {"the outermost", "f;g 5 50\n", "h;g 5 50\n", "f>h "},
        {"nothing", "main;f 5 50\n", "main;f 5 50\n", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(pair_release) struct pair pair = {0};
        CLEANUP(strbuf_release) struct strbuf text = {0};
        open_pair(cases[i].old, cases[i].new, &pair);
        find(&pair, &text);
        if (strcmp(strbuf_text(&text), cases[i].said) != 0) {
            fail_msg("%s: '%s', not '%s'", cases[i].name, strbuf_text(&text), cases[i].said);
        }
    }
}

// Equal estimates tell nothing.
static void sampled_recordings_have_none(void **state)
{
    (void)state;
    CLEANUP(pair_release) struct pair pair = {0};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    open_pair("main;f 5 50\n", "main;h 5 50\n", &pair);
    pair.sides[SIDE_OLD].profile->recording.totals.sample_bytes = 4096;
    pair.sides[SIDE_OLD].profile->recording.totals.interval_bytes = 4096;
    find(&pair, &text);
    assert_string_equal(strbuf_text(&text), "");
}

static void a_renamed_function_has_not_changed(void **state)
{
    (void)state;
    static const struct diff_units plain = {{1, 1}};
    CLEANUP(pair_release) struct pair pair = {0};
    CLEANUP(diff_release) struct diff diff = {0};
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    open_pair("main;f;g 5 50\nmain;f 1 1\n", "main;h;g 5 50\nmain;h 1 1\n", &pair);
    assert_int_equal(renames_find(&pair.code), ERR_OK);
    assert_int_equal(diff_build(&pair.code, &pair.sides[SIDE_NEW].selection,
                                &pair.sides[SIDE_OLD].selection, plain, &diff),
                     ERR_OK);
    assert_int_equal(diff_ranked(&diff, COST_ALLOCATIONS, &ids), ERR_OK);
    assert_int_equal(ids.len, 0);
    assert_int_equal(diff.entries.len, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_the_same_figures_are_the_same),
        cmocka_unit_test(sampled_recordings_have_none),
        cmocka_unit_test(a_renamed_function_has_not_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
