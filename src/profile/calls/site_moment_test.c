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
    assert_figures(site_moment_get(late.moment, load), (struct site_figures){1600, 7, 9, 2});
    assert_figures(site_moment_earlier(early.moment, late.moment, load),
                   (struct site_figures){300, 3, 4, 1});
    assert_figures(site_moment_earlier(early.moment, late.moment, load + 1), // the other line
                   (struct site_figures){0});
    assert_figures(site_moment_earlier(early.moment, late.moment, site_of(&late, "first")),
                   (struct site_figures){0});
    assert_figures(site_moment_get(late.moment, site_of(&late, "other")),
                   (struct site_figures){0, 0, 2, 0});
    assert_figures(early.moment->total, (struct site_figures){320, 5, 6, 1});
    assert_figures(late.moment->total, (struct site_figures){1670, 14, 23, 7});
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
                   (struct site_figures){50, 2, 5, 0});
    assert_figures(m.moment->total, (struct site_figures){50, 2, 5, 0});
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sites_are_found_by_name_in_an_earlier_moment),
        cmocka_unit_test(blocks_of_processes_that_left_are_not_live),
        cmocka_unit_test(a_moment_outlives_its_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
