// SPDX-License-Identifier: MIT
// Tests of wrappers, found and asked for: programs as drawings, with the functions that a reader of
// the drawing calls the program's own allocator.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/text/strbuf.h"
#include "profile/names/asked_wrappers.h"
#include "profile/test_support/drawn_profile.h"

// Append the names of the wrappers that are not known by name, in order, with spaces.
static void list_wrappers(const struct profile *profile, struct strbuf *out)
{
    strbuf_clear(out);
    for (size_t i = 0; i < profile->wrappers.len; i++) {
        const uint32_t function = profile->wrappers.items[i].function;
        const uint32_t name = profile->code.functions.items[function].name;
        strbuf_append_text(out, i > 0 ? " " : "");
        strbuf_append_text(out, string_table_get(&profile->code.names, name));
    }
}

static void wrappers_are_found_by_name_and_calls(void **state)
{
    (void)state;
    // Without size buckets, a row counts with the mean of its sizes.
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        // three callers and three sizes
        {"main;parse;db_alloc 1 16\nmain;load;db_alloc 1 100\nmain;save;db_alloc 1 5000\n",
         "db_alloc"},
        {"main;parse;db_alloc 1 16\nmain;load;db_alloc 1 100\nmain;load;db_alloc 1 5000\n", ""},
        {"main;parse;db_alloc 1 16\nmain;load;db_alloc 1 16\nmain;save;db_alloc 1 16\n", ""},
        {"main;parse;new_node 1 16\nmain;load;new_node 1 100\nmain;save;new_node 1 5000\n", ""},
        // a wrapper of a wrapper
        {"main;parse;db_alloc;mem_alloc 1 16\nmain;load;db_alloc;mem_alloc 1 100\n"
         "main;save;db_alloc;mem_alloc 1 5000\nmain;open;mem_alloc 1 16\nmain;run;mem_alloc 1 16\n",
         "mem_alloc db_alloc"},
        // known by name, and recursive callers
        {"main;zmalloc 1 16\nload;zmalloc 1 100\nsave;zmalloc 1 5000\n", ""},
        {"db_alloc;db_alloc 1 16\ndb_alloc 1 100\nmain;db_alloc 1 5000\n", ""},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(strbuf_release) struct strbuf found = {0};
        drawn_profile_open(cases[i].text, &drawn);
        list_wrappers(drawn.profile, &found);
        if (strcmp(strbuf_text(&found), cases[i].wanted) != 0) {
            fail_msg("\"%s\", not \"%s\" in:\n%s", strbuf_text(&found), cases[i].wanted,
                     cases[i].text);
        }
    }
}

// The call site is the program's own frame. A library's thread has its innermost frame of a
// library, and the crate of main is the program's own, wherever cargo built it.
static void libraries_are_passed_over(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *site;
    } cases[] = {
#define CRATES "/h/.cargo/registry/src/index/"
        {"app::main(/app/src/main.rs:1);json::parse(" CRATES "json-1.0/src/de.rs:2);"
         "alloc::alloc::alloc 1 16\n",
         "app::main"},
        {"app::main(/app/src/main.rs:1);pool::run(" CRATES "pool-1.0/src/run.rs:2);"
         "app::job(/app/src/job.rs:7);json::parse(" CRATES "json-1.0/src/de.rs:2) 1 16\n",
         "app::job"},
        {"start_thread;std::thread::run;pool::work(" CRATES "pool-1.0/src/run.rs:2);"
         "pool::grow(" CRATES "pool-1.0/src/run.rs:9);alloc::alloc::alloc 1 16\n",
         "pool::grow"},
        {"rg::main(" CRATES "rg-13.0/src/main.rs:1);rg::search(" CRATES "rg-13.0/src/search.rs:2);"
         "regex::compile(" CRATES "regex-1.7/src/exec.rs:3);alloc::alloc::alloc 1 16\n",
         "rg::search"},
        {"main(/app/a.cpp:1);remember(/app/a.cpp:2);lib::put(/usr/include/lib/put.h:3) 1 16\n",
         "remember"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        drawn_profile_open(cases[i].text, &drawn);
        const uint32_t node = drawn.profile->recording.rows[0].node;
        const uint32_t location = profile_call_site(drawn.profile, node).location;
        assert_string_equal(profile_location_function(drawn.profile, location), cases[i].site);
    }
}

// Write the functions of a stack that are no wrappers, outermost first, each before a ';'.
static void write_shown(const struct profile *profile, uint32_t node, struct strbuf *out)
{
    const struct rec_node *at = &profile->recording.nodes[node];
    if (at->parent != 0) {
        write_shown(profile, at->parent, out);
    }
    const uint32_t location = code_index_node_chain(&profile->code, node, at->frame).locations[0];
    if (!profile_is_wrapper(profile, location)) {
        strbuf_printf(out, "%s;", profile_location_function(profile, location));
    }
}

// Code of libc and libstdc++ without a name is a wrapper where it starts a thread or the program.
static void starts_without_names_are_wrappers(void **state)
{
    (void)state;
#define LIBC "/lib/libc.so.6!"
#define CXX  "/lib/libstdc++.so.6!"
    static const struct {
        const char *text;
        const char *shown;
    } cases[] = {
        {LIBC ";" CXX ";std::thread::run;work;operator new 1 16\n", "work;"},
        {"/lib/ld-linux-x86-64.so.2!;_start;main;operator new 1 16\n", "main;"},
        {"main;" LIBC ";work;operator new 1 16\n", "main;libc.so.6+0x20;work;"},
        {"/lib/libapp.so!;work;operator new 1 16\n", "libapp.so+0x10;work;"},
        {"main;" LIBC "(/a.c:1);work 1 16\n" LIBC "(/a.c:1);work 1 16\n",
         "main;libc.so.6+0x20;work;"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(strbuf_release) struct strbuf shown = {0};
        drawn_profile_open(cases[i].text, &drawn);
        write_shown(drawn.profile, drawn.profile->recording.rows[0].node, &shown);
        assert_string_equal(strbuf_text(&shown), cases[i].shown);
    }
}

// Draw `callers` functions that call `called`, with `sizes` sizes and `places` lines in it.
static void draw_calls(
    struct strbuf *out, const char *called, unsigned callers, unsigned sizes, unsigned places)
{
    for (unsigned i = 0; i < callers; i++) {
        strbuf_printf(out, "main;f%u;%s(a.c:%u) 1 %llu\n", i, called, 1 + i % places,
                      1ULL << (i % sizes));
    }
}

static void other_functions_need_many_callers_and_sizes(void **state)
{
    (void)state;
    static const struct {
        unsigned callers;
        unsigned sizes;
        unsigned places;
        uint64_t others; // allocations elsewhere
        bool wanted;
    } cases[] = {
        {12, 8, 2, 0, true},        {12, 8, 2, 48, true}, {11, 8, 2, 0, false},
        {12, 7, 2, 0, false},       {12, 8, 3, 0, false}, {40, 12, 1, 100, true},
        {12, 8, 2, 5000000, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(strbuf_release) struct strbuf text = {0};
        draw_calls(&text, "get", cases[i].callers, cases[i].sizes, cases[i].places);
        strbuf_printf(&text, "main;work %llu %llu\n", (unsigned long long)cases[i].others,
                      (unsigned long long)cases[i].others * 10);
        drawn_profile_open(strbuf_text(&text), &drawn);
        if ((drawn.profile->wrappers.len == 1) != cases[i].wanted) {
            fail_msg("%zu wrappers in:\n%s", drawn.profile->wrappers.len, strbuf_text(&text));
        }
    }
}

static void users_name_wrappers(void **state)
{
    (void)state;
    static const char *const expressions[] = {"^new_", "^load$"};
    static const struct name_sources sources = {.wrappers = expressions, .wrapper_count = 2};
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    CLEANUP(strbuf_release) struct strbuf found = {0};
    drawn_profile_open("main;load;new_node(int) 1 16\nmain;reload;new_list 1 16\n", &drawn);
    assert_int_equal(asked_wrappers_apply(drawn.profile, &sources, NULL), ERR_OK);
    list_wrappers(drawn.profile, &found);
    assert_string_equal(strbuf_text(&found), "new_node(int) new_list load");
    const struct recording *recording = &drawn.profile->recording;
    static const char *const wanted[] = {"main", "reload"};
    assert_int_equal(recording->row_count, ARRAY_LEN(wanted));
    for (size_t row = 0; row < ARRAY_LEN(wanted); row++) {
        const uint32_t site = profile_call_site(drawn.profile, recording->rows[row].node).location;
        assert_string_equal(profile_location_function(drawn.profile, site), wanted[row]);
    }
}

static void native_frames_around_python_are_wrappers(void **state)
{
    (void)state;
    // Each line's first word is the call site that its reader expects.
    static const char text[] =
        "py!main;py!Py_Init;py!new_type;malloc 1 8\n" // no Python in the stack
        "py!main;py!Py_Run;py!eval;[python] run:/a.py!run;py!new_list;py!new_type 1 16\n"
        "py!main;py!Py_Run;py!eval;[python] run:/a.py!run 1 32\n"
        "py!main;py!Py_Run;py!eval;[python] run:/a.py!run;ext.so!sort;[python] less:/a.py!less;"
        "ext.so!copy 1 64\n"
        "app!work;py!eval;[python] run:/a.py!run;py!new_list 1 128\n" // an embedding program
        "app!work;ext.so!sort 1 256\n";
    static const char *const sites[] = {"new_type", "run", "run", "less", "run", "sort"};
    static const size_t shown[] = {2, 1, 1, 2, 2, 2}; // frames that are not wrappers
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    drawn_profile_open(text, &drawn);
    const struct recording *recording = &drawn.profile->recording;
    assert_int_equal(recording->row_count, ARRAY_LEN(sites));
    for (size_t row = 0; row < ARRAY_LEN(sites); row++) {
        const uint32_t node = recording->rows[row].node;
        const uint32_t site = profile_call_site(drawn.profile, node).location;
        size_t others = 0;
        assert_string_equal(profile_location_function(drawn.profile, site), sites[row]);
        for (uint32_t at = node; at != 0; at = recording->nodes[at].parent) {
            const struct code_chain chain = selection_chain(&drawn.selection, at);
            others += !profile_is_wrapper(drawn.profile, chain.locations[0]);
        }
        if (others != shown[row]) {
            fail_msg("row %zu: %zu frames, not %zu", row, others, shown[row]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_are_passed_over),
        cmocka_unit_test(starts_without_names_are_wrappers),
        cmocka_unit_test(wrappers_are_found_by_name_and_calls),
        cmocka_unit_test(other_functions_need_many_callers_and_sizes),
        cmocka_unit_test(users_name_wrappers),
        cmocka_unit_test(native_frames_around_python_are_wrappers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
