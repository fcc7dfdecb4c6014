// SPDX-License-Identifier: MIT
// Tests of names that tell functions with one short name apart.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/model/function_name.h"
#include "profile/names/distinct_name.h"

// Each name among the others of its case, and what it is called.
static const struct {
    const char *names[4];
    const char *distinct[4];
} cases[] = {
    {{"void leaf<6>(int)", "void leaf<63>(int)"}, {"leaf<6>", "leaf<63>"}},
    {{"app::load<int>(int)", "app::load<char>(char)", "app::load<long>(long)"},
     {"app::load<int>(int)", "app::load<char>(char)", "app::load<long>(long)"}},
    {{"Tree<policy<1> >::insert(int)", "Tree<policy<2> >::insert(int)"},
     {"Tree::insert [policy<1>]", "Tree::insert [policy<2>]"}},
    {{"open(int)", "open(char const*)"}, {"open(int)", "open(char const*)"}},
    {{"open()", "close()", "reopen()"}, {"open", "close", "reopen"}},
    {{"open", "open"}, {"open", "open"}}, // of two modules
    {{"f<1>()", "f()"}, {"f<1>", "f"}},
    {{"(anonymous namespace)::f<1>()", "f<2>()"}, {"f [(anonymous namespace)::f<1>]", "f<2>"}},
    {{"f<", "f<<"}, {"f<", "f<<"}},
    {{"", "f"}, {"", "f"}},
};

static void functions_of_one_short_name_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t own = 0; own < 4 && cases[i].names[own] != NULL; own++) {
            CLEANUP(strbuf_release) struct strbuf shortest = {0};
            CLEANUP(strbuf_release) struct strbuf out = {0};
            struct name_peers peers = name_peers_of(cases[i].names[own]);
            name_append(&shortest, cases[i].names[own], NAME_NO_ANONYMOUS);
            for (size_t other = 0; other < 4 && cases[i].names[other] != NULL; other++) {
                if (name_has_short_form(cases[i].names[other], strbuf_text(&shortest))) {
                    name_peers_add(&peers, cases[i].names[other]);
                }
            }
            name_append_distinct(&out, &peers);
            if (strcmp(strbuf_text(&out), cases[i].distinct[own]) != 0) {
                fail_msg("%s is called %s, not %s", cases[i].names[own], strbuf_text(&out),
                         cases[i].distinct[own]);
            }
        }
    }
}

// What differs is there, however long the rest is.
static void long_names_keep_what_differs(void **state)
{
    (void)state;
    struct strbuf names[2] = {{0}, {0}};
    CLEANUP(strbuf_release) struct strbuf out = {0};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        strbuf_append_text(&names[i], "boost::");
        for (int k = 0; k < 200; k++) {
            strbuf_printf(&names[i], "part%d::", k);
        }
        strbuf_printf(&names[i], "wrapper<vector<%s> >::wrapper(int)", i == 0 ? "int" : "double");
    }
    struct name_peers peers = name_peers_of(strbuf_text(&names[0]));
    name_peers_add(&peers, strbuf_text(&names[1]));
    name_append_distinct(&out, &peers);
    assert_string_equal(
        strbuf_text(&out),
        "boost::part0::part1::part2::...8::part199::wrapper::wrapper [vector<int>]");
    strbuf_release(&names[0]);
    strbuf_release(&names[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_one_short_name_are_told_apart),
        cmocka_unit_test(long_names_keep_what_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
