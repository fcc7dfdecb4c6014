// SPDX-License-Identifier: MIT
// push_part: which processes get a profile of their own, and which rows a sample of their own.
#include "push/push_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/text/strbuf.h"
#include "profile/test_support/drawn_profile.h"

// Open a recording of `processes` with `rows` stacks each. Stack n of process p allocated
// 10 * p + n blocks, and holds none, so that the last ones have the largest share.
static void draw(unsigned processes, unsigned rows, struct drawn_profile *out)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    for (unsigned p = 1; p <= processes; p++) {
        strbuf_printf(&text, "process p%c\n", 'a' + (char)(p % 26));
        for (unsigned n = 1; n <= rows; n++) {
            const unsigned count = 10 * p + n;
            strbuf_printf(&text, "f%c %u %u %u %u\n", 'a' + (char)n, count, count, count, count);
        }
    }
    drawn_profile_open(strbuf_text(&text), out);
}

static void find(const struct profile *profile, struct push_parts *out)
{
    CLEANUP(row_change_vec_release) struct row_change_vec changes = {0};
    CLEANUP(selection_release) struct selection selection = {0};
    struct err_info info = {0};
    assert_int_equal(profile_select(profile, NULL, &selection, &info), ERR_OK);
    assert_int_equal(row_change_vec_resize(&changes, profile->recording.row_count), ERR_OK);
    for (size_t i = 0; i < changes.len; i++) {
        changes.items[i].allocations = profile->recording.rows[i].allocations;
    }
    assert_int_equal(push_parts_find(&selection, &changes, out), ERR_OK);
}

static void each_process_has_a_part_up_to_a_bound(void **state)
{
    (void)state;
    static const struct {
        unsigned processes;
        size_t parts;
        size_t shared_rows; // 0: there is no shared part
    } cases[] = {
        {1, 1, 0},
        {PUSH_PARTS_MAX, PUSH_PARTS_MAX, 0},
        {PUSH_PARTS_MAX + 1, PUSH_PARTS_MAX + 1, 2},
        {PUSH_PARTS_MAX + 9, PUSH_PARTS_MAX + 1, 18},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
        CLEANUP(push_parts_release) struct push_parts parts = {0};
        size_t shared = 0;
        draw(cases[i].processes, 2, &fixture);
        find(fixture.profile, &parts);
        assert_int_equal(parts.parts.len, cases[i].parts);
        for (size_t p = 0; p < parts.parts.len; p++) {
            const struct push_part *part = &parts.parts.items[p];
            shared += part->process == REC_NONE ? part->row_count : 0;
            assert_true(part->process == REC_NONE || part->row_count == 2);
        }
        assert_int_equal(shared, cases[i].shared_rows);
    }
}

static void the_rows_with_the_most_stay_alone(void **state)
{
    (void)state;
    enum {
        ROWS = 5,
        PROCESSES = 2,
    };
    for (size_t most = 0; most <= ROWS + 1; most++) {
        CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
        CLEANUP(push_parts_release) struct push_parts parts = {0};
        CLEANUP(flag_vec_release) struct flag_vec fates = {0};
        draw(PROCESSES, ROWS, &fixture);
        find(fixture.profile, &parts);
        assert_int_equal(push_parts_choose(&parts, fixture.profile, 1, most, &fates), ERR_OK);
        for (uint32_t i = 0; i < fates.len; i++) {
            const uint64_t allocations = fixture.profile->recording.rows[i].allocations;
            const enum export_fate wanted = allocations <= 20                ? EXPORT_NOWHERE
                                            : allocations + most > 20 + ROWS ? EXPORT_ALONE
                                                                             : EXPORT_IN_OTHER;
            assert_int_equal(fates.items[i], wanted);
        }
    }
}

static void of_equal_rows_no_more_stay_alone_than_may(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
    CLEANUP(push_parts_release) struct push_parts parts = {0};
    CLEANUP(flag_vec_release) struct flag_vec fates = {0};
    drawn_profile_open("process p\na 5 5 5 5\nb 5 5 5 5\nc 5 5 5 5\n", &fixture);
    find(fixture.profile, &parts);
    assert_int_equal(push_parts_choose(&parts, fixture.profile, 0, 2, &fates), ERR_OK);
    size_t alone = 0;
    for (size_t i = 0; i < fates.len; i++) {
        alone += fates.items[i] == EXPORT_ALONE;
    }
    assert_int_equal(alone, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_has_a_part_up_to_a_bound),
        cmocka_unit_test(the_rows_with_the_most_stay_alone),
        cmocka_unit_test(of_equal_rows_no_more_stay_alone_than_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
