// SPDX-License-Identifier: MIT
// Tests of growth verdicts: drawn curves whose shape says what they are.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/strbuf.h"
#include "profile/growth.h"
#include "recording/recording_text.h"

struct fixture {
    struct recording recording;
    struct profile *profile;
    struct selection selection;
};

static void fixture_release(struct fixture *fixture)
{
    selection_release(&fixture->selection);
    profile_close(fixture->profile);
    recording_release(&fixture->recording);
}

static void open_text(const char *text, struct fixture *out)
{
    struct err_info info = {0};
    enum err problem = recording_from_text(text, &out->recording, &info);
    if (problem == ERR_OK) {
        out->recording.meta.state = REC_STATE_FINISHED;
        problem = profile_from_recording(&out->recording, NULL, NULL, &out->profile, &info);
    }
    if (problem != ERR_OK || profile_select(out->profile, NULL, &out->selection, &info) != ERR_OK) {
        fail_msg("%s in:\n%s", info.text, text);
    }
}

// Live bytes at the ends of eight slices, drawn as allocations and frees of one stack.
static void draw_curve(const unsigned *curve, bool survivors_are_old, struct strbuf *out)
{
    unsigned allocated = 0;
    unsigned freed = 0;
    CLEANUP(strbuf_release) struct strbuf cells = {0};
    for (unsigned i = 0, before = 0; i < 8; before = curve[i], i++) {
        unsigned more = curve[i] > before ? curve[i] - before : 0;
        unsigned less = curve[i] < before ? before - curve[i] : 0;
        // Something temporary in each slice, so that it has a cell.
        strbuf_printf(&cells, "@%u %u %u %u %u 1\n", i, more + 1, more + 1, less + 1, less + 1);
        allocated += more + 1;
        freed += less + 1;
    }
    strbuf_printf(out, "app!grow(a.c:1) %u %u %u %u 8 8\n%s", allocated, allocated, freed, freed,
                  strbuf_text(&cells));
    if (curve[7] > 0) {
        strbuf_printf(out, "cohort %u - %u %u\n", survivors_are_old ? 0 : 7, curve[7], curve[7]);
    }
}

static void growth_is_told_by_its_shape(void **state)
{
    (void)state;
    static const struct {
        unsigned curve[8];
        bool survivors_are_old;
        enum growth_class class;
        double slope_bytes_per_s; // where the last six points lie on a line
    } cases[] = {
        {{10, 20, 30, 40, 50, 60, 70, 80}, false, GROWTH_GROWING, 100},
        {{80, 80, 80, 80, 80, 80, 80, 80}, true, GROWTH_START_UP, 0},
        {{80, 80, 80, 80, 80, 80, 80, 80}, false, GROWTH_STEADY, 0},
        {{0, 0, 0, 0, 0, 0, 0, 50}, false, GROWTH_LATE, 0},
        {{0, 0, 0, 0, 0, 0, 60, 50}, false, GROWTH_LATE, 0},
        {{10, 90, 20, 80, 10, 90, 20, 80}, false, GROWTH_STEADY, 0},
        {{10, 20, 100, 100, 101, 101, 102, 102}, false, GROWTH_STEADY, 0}, // below a tenth
        {{90, 80, 70, 60, 50, 40, 30, 20}, true, GROWTH_START_UP, -100},
    };
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        CLEANUP(fixture_release) struct fixture fixture = {0};
        CLEANUP(growth_release) struct growth growth = {0};
        draw_curve(cases[i].curve, cases[i].survivors_are_old, &text);
        open_text(strbuf_text(&text), &fixture);
        assert_int_equal(growth_build(&fixture.selection, ROW_GROUPS_BY_SITE, SIZE_MAX, &growth),
                         ERR_OK);
        assert_int_equal(growth.entries.len, 1);
        const struct growth_entry *entry = &growth.entries.items[0];
        if (entry->class != cases[i].class) {
            fail_msg("curve %u is %s, not %s", i, growth_class_name(entry->class),
                     growth_class_name(cases[i].class));
        }
        bool is_line = cases[i].class == GROWTH_GROWING || cases[i].class == GROWTH_START_UP;
        if (is_line && fabs(entry->slope_bytes_per_s - cases[i].slope_bytes_per_s) > 1e-6) {
            fail_msg("curve %u has slope %f, not %f", i, entry->slope_bytes_per_s,
                     cases[i].slope_bytes_per_s);
        }
        assert_int_equal(entry->first_slice, 0);
        assert_int_equal(entry->last_slice, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_is_told_by_its_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
