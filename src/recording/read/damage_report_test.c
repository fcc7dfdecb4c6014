// SPDX-License-Identifier: MIT
// Tests of the verdict on a damaged file: each state that a file may have.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "recording/read/damage_report.h"

static void a_file_is_called_what_it_is(void **state)
{
    (void)state;
    static const struct {
        struct damage_report damage_report;
        enum recording_condition condition;
    } cases[] = {
        {{.has_footer = true, .is_whole = true}, RECORDING_COMPLETE},
        {{.is_whole = true, .is_running = true}, RECORDING_GROWING},
        {{.is_whole = false, .is_running = true}, RECORDING_TRUNCATED}, // its snapshot is truncated
        {{.is_whole = true, .is_running = false}, RECORDING_TRUNCATED}, // its footer is missing
        {{.has_footer = true, .is_whole = false}, RECORDING_DAMAGED},
        {{.has_footer = true, .is_whole = true, .newest_generation = 2}, RECORDING_DAMAGED},
        {{.is_whole = true, .is_running = true, .dropped = 1}, RECORDING_DAMAGED},
        {{.is_whole = false, .is_running = true, .dropped = 1}, RECORDING_TRUNCATED},
        {{.is_whole = true, .is_running = true, .repaired = 1}, RECORDING_DAMAGED},
        {{.is_whole = true, .is_running = true, .damaged_chunks = 1}, RECORDING_DAMAGED},
        {{.is_whole = true, .is_running = true, .damaged_bytes = 1}, RECORDING_DAMAGED},
        {{.has_footer = true, .is_whole = true, .is_header_damaged = true}, RECORDING_DAMAGED},
        {{.has_footer = true, .is_whole = true, .is_contents_damaged = true}, RECORDING_DAMAGED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (damage_report_condition(&cases[i].damage_report) != cases[i].condition) {
            fail_msg("case %zu: %d, not %d", i, damage_report_condition(&cases[i].damage_report),
                     cases[i].condition);
        }
    }
}

static void an_omitted_history_has_its_true_reason(void **state)
{
    (void)state;
    static const struct {
        struct damage_report damage_report;
        enum recording_condition condition;
        const char *text;
    } cases[] = {
        {{.has_footer = true,
          .is_whole = true,
          .is_pruned = true,
          .most_bytes = 64 << 20,
          .is_memory_limit = true},
         RECORDING_PRUNED,
         "the history of stacks over time is omitted, because all tables together may take only "
         "64.0 MiB of memory, their share of the memory here"},
        {{.has_footer = true, .is_whole = true, .is_pruned = true, .most_bytes = 64 << 20},
         RECORDING_DAMAGED,
         "the history of stacks over time is omitted, because all tables together may take only "
         "64.0 MiB of memory, as the file does not say what they need"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[384];
        assert_int_equal(damage_report_condition(&cases[i].damage_report), cases[i].condition);
        damage_report_text(&cases[i].damage_report, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void what_is_announced_and_not_there_is_missing(void **state)
{
    (void)state;
    const struct damage_report s = {.announced = {7, 3, 5}, .counts = {4, 9, 5}};
    char text[384];
    damage_report_text(&s, text, sizeof(text));
    // More entries of one table than announced compensate for none of another.
    assert_string_equal(text, "the file ends too early; incomplete: what ran (4 of 7)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_called_what_it_is),
        cmocka_unit_test(an_omitted_history_has_its_true_reason),
        cmocka_unit_test(what_is_announced_and_not_there_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
