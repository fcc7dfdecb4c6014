// SPDX-License-Identifier: MIT
// Tests of site_moment: two drawings of one run are two moments of it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/calls/site_moment.h"
#include "profile/test_support/drawn_profile.h"

struct drawn_moment {
    struct drawn_profile drawn;
    struct call_sites sites;
    struct site_moment *moment;
};

static void drawn_moment_release(struct drawn_moment *m)
{
    site_moment_unref(m->moment);
    call_sites_release(&m->sites);
    drawn_profile_release(&m->drawn);
}

static void open_moment(const char *text, struct drawn_moment *m)
{
    drawn_profile_open(text, &m->drawn);
    assert_int_equal(call_sites_build_alone(&m->drawn.selection, &m->sites), ERR_OK);
    assert_int_equal(site_moment_build(&m->drawn.selection, &m->sites, &m->moment), ERR_OK);
}

// Return the site of the function.
static size_t site_of(const struct drawn_moment *m, const char *function)
{
    for (size_t i = 0; i < m->sites.sites.len; i++) {
        const uint32_t location = m->sites.sites.items[i].location;
        if (strcmp(profile_location_function(m->drawn.profile, location), function) == 0) {
            return i;
        }
    }
    fail_msg("no site %s", function);
    return 0;
}

static void assert_figures(struct site_figures is, struct site_figures wanted)
{
    assert_int_equal(is.live_bytes, wanted.live_bytes);
    assert_int_equal(is.live_blocks, wanted.live_blocks);
    assert_int_equal(is.allocations, wanted.allocations);
    assert_int_equal(is.temporary, wanted.temporary);
}

static void sites_are_found_by_name_in_an_earlier_moment(void **state)
{
    (void)state;
    CLEANUP(drawn_moment_release) struct drawn_moment early = {0};
    CLEANUP(drawn_moment_release) struct drawn_moment late = {0};
    // The later one has more functions before the others, so that the ids differ.
    open_moment("main;load(a.c:7) 4 400 1 100 1 100\n"
                "main;other(a.c:9) 2 20 0 0 0 0\n",
                &early);
    open_moment("main;first(b.c:1) 5 50 5 50 5 50\n"
                "main;more;load(a.c:7) 1 1000 0 0 0 0\n"
                "main;load(a.c:7) 8 800 2 200 2 200\n"
                "main;load(a.c:8) 7 70 0 0 0 0\n"
                "main;other(a.c:9) 2 20 2 20 0 0\n",
                &late);
    const size_t load = site_of(&late, "load");
    assert_figures(site_moment_get(late.moment, load),
                   (struct site_figures){
                       .live_bytes = 1600, .live_blocks = 7, .allocations = 9, .temporary = 2});
    assert_figures(site_moment_earlier(early.moment, late.moment, load),
                   (struct site_figures){
                       .live_bytes = 300, .live_blocks = 3, .allocations = 4, .temporary = 1});
    assert_figures(site_moment_earlier(early.moment, late.moment, load + 1), // the other line
                   (struct site_figures){0});
    assert_figures(site_moment_earlier(early.moment, late.moment, site_of(&late, "first")),
                   (struct site_figures){0});
    assert_figures(
        site_moment_get(late.moment, site_of(&late, "other")),
        (struct site_figures){.live_bytes = 0, .live_blocks = 0, .allocations = 2, .temporary = 0});
    assert_figures(early.moment->total,
                   (struct site_figures){
                       .live_bytes = 320, .live_blocks = 5, .allocations = 6, .temporary = 1});
    assert_figures(late.moment->total,
                   (struct site_figures){
                       .live_bytes = 1670, .live_blocks = 14, .allocations = 23, .temporary = 7});
}

static void blocks_of_processes_that_left_are_not_live(void **state)
{
    (void)state;
    CLEANUP(drawn_moment_release) struct drawn_moment m = {0};
    open_moment("process child\nleft 100\nthread main\nmain;load(a.c:7) 3 300 1 100 0 0\n"
                "@0 3 300 1 100 0\n"
                "process parent\nthread main\nmain;load(a.c:7) 2 50 0 0 0 0\n@3 2 50 0 0 0\n",
                &m);
    assert_figures(site_moment_get(m.moment, site_of(&m, "load")),
                   (struct site_figures){
                       .live_bytes = 50, .live_blocks = 2, .allocations = 5, .temporary = 0});
    assert_figures(m.moment->total,
                   (struct site_figures){
                       .live_bytes = 50, .live_blocks = 2, .allocations = 5, .temporary = 0});
}

static void a_moment_outlives_its_profile(void **state)
{
    (void)state;
    struct site_moment *kept = NULL;
    {
        CLEANUP(drawn_moment_release) struct drawn_moment m = {0};
        open_moment("main;load(a.c:7) 4 400 1 100 1 100\n", &m);
        kept = site_moment_ref(m.moment);
    }
    CLEANUP(drawn_moment_release) struct drawn_moment late = {0};
    open_moment("main;load(a.c:7) 5 400 1 100 1 100\n", &late);
    assert_int_equal(site_moment_earlier(kept, late.moment, 0).allocations, 4);
    site_moment_unref(kept);
}

// Blocks that are live at both moments have no part in the error of a change, nor those that are
// live at neither.
static void the_error_of_a_change_is_of_what_changed(void **state)
{
    (void)state;
    static const struct sampling sampling = {.is_sampled = true, .bytes = 8192};
    static const struct {
        uint64_t live_bytes[2]; // earlier, later
        uint64_t allocated_bytes[2];
        uint64_t changed_bytes; // of blocks that are live at one of both, at most
    } cases[] = {
        {{1000000, 1000000}, {5000000, 5000000}, 0},       // nothing happened
        {{1000000, 1300000}, {5000000, 5300000}, 300000},  // a leak
        {{1000000, 400000}, {5000000, 5000000}, 600000},   // only freed
        {{1000000, 1000000}, {5000000, 9000000}, 2000000}, // all of it may be renewed
        {{0, 700000}, {0, 900000}, 700000},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct site_figures earlier = {.live_bytes = cases[i].live_bytes[0],
                                             .allocated_bytes = cases[i].allocated_bytes[0]};
        const struct site_figures later = {.live_bytes = cases[i].live_bytes[1],
                                           .allocated_bytes = cases[i].allocated_bytes[1]};
        assert_int_equal(site_change_error(&sampling, &earlier, &later),
                         sampling_error_of_bytes(&sampling, cases[i].changed_bytes));
        assert_int_equal(site_change_error(&(struct sampling){0}, &earlier, &later), 0);
    }
    // 400 of 1,000 blocks of 99 bytes are new: their number has the error of 400.
    const struct site_figures earlier = {.allocations = 600, .sizes = {6, 100}};
    const struct site_figures later = {.allocations = 1000, .sizes = {10, 100}};
    const uint64_t error = site_allocations_error(&sampling, &earlier, &later);
    assert_in_range(error, 384, 385); // 2 * sqrt(9 / 8 * 8192 * 400 / 100)
    assert_int_equal(site_figures_error(&sampling, &later).allocations, 608); // of 1,000
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sites_are_found_by_name_in_an_earlier_moment),
        cmocka_unit_test(blocks_of_processes_that_left_are_not_live),
        cmocka_unit_test(the_error_of_a_change_is_of_what_changed),
        cmocka_unit_test(a_moment_outlives_its_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
