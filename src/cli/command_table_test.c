// SPDX-License-Identifier: MIT
// Tests of command_table: the command that a mistyped word suggests.
#include "cli/command_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"

static void mistyped_words_suggest_a_command(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        const char *wanted; // NULL: none
    } cases[] = {
        {"record", "record"},
        {"recor", "record"},   // one letter less
        {"rrecord", "record"}, // one more, at the start
        {"recordd", "record"}, // and at the end
        {"recard", "record"},  // another letter
        {"xecorx", "record"},  // the first and the last one
        {"cerord", "record"},  // far letters are no neighbours: two changes
        {"reocdr", "record"},  // two pairs of swapped neighbours
        {"ercodr", "record"},  // also at both ends
        {"xeocrx", NULL},      // a change, a swap and a change
        {"ecord", "record"},   // without the first letter
        {"cord", "record"},
        {"reocdx", NULL}, // a swap and two changes
        {"reco", "record"},
        {"rec", NULL},
        {"recordxy", "record"},
        {"recordxyz", NULL},
        {"tpo", "top"},
        {"to", NULL}, // too short: two edits make any word of it
        {"", NULL},
        {"ctop", "top"}, // nearer than ctl
        {"simbolyze", "symbolize"},
        {"fifteen-letters", NULL},
        {"sixteen-letters!", NULL},
        {"a word that is much longer than the table of distances", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct command *command = command_suggest(command_table, cases[i].word);
        assert_string_equal(command != NULL ? command->name : "(none)",
                            cases[i].wanted != NULL ? cases[i].wanted : "(none)");
    }
}

static void commands_are_found_by_their_whole_name(void **state)
{
    (void)state;
    for (command_list command = command_table; *command != NULL; command++) {
        assert_ptr_equal(command_find(command_table, (*command)->name), *command);
    }
    assert_null(command_find(command_table, ""));
    assert_null(command_find(command_table, "recor"));
    assert_null(command_find(command_table, "records"));
    assert_null(command_find(command_table, "Record"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistyped_words_suggest_a_command),
        cmocka_unit_test(commands_are_found_by_their_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
