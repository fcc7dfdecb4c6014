// SPDX-License-Identifier: MIT
// Tests of options: the meaning of command lines, and the messages for invalid ones.
#include "cli/options/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

struct fields {
    bool flag;
    const char *text;
    uint32_t count;
    uint64_t duration_ms;
    const char *choice;
    const char *regex;
};

static const char *const choices[] = {"wait", "sample", NULL};

// clang-format off
static const struct option_spec specs[] = {
    OPTION('f', "flag", FLAG, NULL, offsetof(struct fields, flag), "a flag"),
    OPTION('t', "text", TEXT, "TEXT", offsetof(struct fields, text), "a text"),
    OPTION('n', "count", COUNT, "N", offsetof(struct fields, count), "a count", .minimum = 2),
    OPTION(0, "every", DURATION_MS, "TIME", offsetof(struct fields, duration_ms),
           "a duration, explained with so many words that they cannot all stand on one line"),
    OPTION(0, "choose", CHOICE, "WORD", offsetof(struct fields, choice),
           "a choice", .choices = choices),
    OPTION(0, "match", REGEX, "REGEX", offsetof(struct fields, regex), "an expression"),
    OPTION('p', "pid", REFUSED, "PID", 0, "not there yet"),
    OPTION(0, "secret", FLAG, NULL, offsetof(struct fields, flag), NULL, .is_hidden = true),
};
// clang-format on

enum {
    ARGUMENTS_MAX = 12
};

struct parsed {
    enum options_outcome outcome;
    struct fields fields;
    struct err_info info;
    char *arguments[ARGUMENTS_MAX + 2]; // as getopt has ordered them
    int count;
    int operand;
    char *copy; // owned; the arguments point into it
};

static void parsed_release(struct parsed *parsed)
{
    free(parsed->copy);
}

// Parse the words of `line`.
static void parse(const char *line, bool follows_operands, struct parsed *out)
{
    *out = (struct parsed){.copy = strdup(line), .count = 1};
    static char name[] = "command";
    out->arguments[0] = name;
    char *rest = out->copy;
    for (char *word = strtok_r(rest, " ", &rest); word != NULL && out->count < ARGUMENTS_MAX;
         word = strtok_r(NULL, " ", &rest)) {
        out->arguments[out->count++] = word;
    }
    struct option_table table = {
        .specs = specs, .count = ARRAY_LEN(specs), .follows_operands = follows_operands};
    out->outcome =
        options_parse(table, out->count, out->arguments, &out->fields, &out->operand, &out->info);
}

static void values_reach_their_fields(void **state)
{
    (void)state;
    CLEANUP(parsed_release) struct parsed parsed;
    parse("-ft TEXT --count=7 --every 2.5s --choose=sample --match ^a+$", false, &parsed);
    assert_int_equal(parsed.outcome, OPTIONS_OK);
    assert_true(parsed.fields.flag);
    assert_string_equal(parsed.fields.text, "TEXT");
    assert_int_equal(parsed.fields.count, 7);
    assert_int_equal(parsed.fields.duration_ms, 2500);
    assert_string_equal(parsed.fields.choice, "sample");
    assert_string_equal(parsed.fields.regex, "^a+$");
    assert_int_equal(parsed.operand, parsed.count);
}

static void operands_end_the_options_unless_they_may_mix(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool follows_operands;
        const char *first_operand; // NULL: none
        bool flag;
        enum options_outcome outcome;
    } cases[] = {
        {"-f prog -t x", false, "prog", true, OPTIONS_OK},
        {"prog -f", false, "prog", false, OPTIONS_OK},
        {"prog -f", true, "prog", true, OPTIONS_OK},
        {"prog --help", false, "prog", false, OPTIONS_OK},
        {"prog --help", true, "prog", false, OPTIONS_HELP},
        {"-- -f", false, "-f", false, OPTIONS_OK},
        {"-- -f", true, "-f", false, OPTIONS_OK},
        {"-", false, "-", false, OPTIONS_OK},
        {"-f", false, NULL, true, OPTIONS_OK},
        {"", false, NULL, false, OPTIONS_OK},
        {"--secret", false, NULL, true, OPTIONS_OK},
        {"--fla x", false, "x", true, OPTIONS_OK}, // unambiguous beginnings do, as everywhere
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(parsed_release) struct parsed parsed;
        parse(cases[i].line, cases[i].follows_operands, &parsed);
        if (parsed.outcome != cases[i].outcome) {
            fail_msg("\"%s\": outcome %d, not %d", cases[i].line, (int)parsed.outcome,
                     (int)cases[i].outcome);
        }
        if (parsed.outcome == OPTIONS_HELP) {
            continue;
        }
        assert_int_equal(parsed.fields.flag, cases[i].flag);
        if (cases[i].first_operand == NULL) {
            assert_int_equal(parsed.operand, parsed.count);
        } else {
            assert_string_equal(parsed.arguments[parsed.operand], cases[i].first_operand);
        }
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *said;
    } cases[] = {
        {"--nope", "unknown option --nope"},
        {"--flga", "unknown option --flga; did you mean --flag?"},
        {"--conut=3", "unknown option --conut=3; did you mean --count?"},
        {"--an-option-with-a-name-that-is-much-longer-than-any",
         "unknown option --an-option-with-a-name-that-is-much-longer-than-any"},
        {"-x", "unknown option -x"},
        {"-fx", "unknown option -x"},
        {"-t", "-t needs a value"},
        {"--text", "--text needs a value"},
        {"--flag=1", "--flag=1 takes no value"},
        {"-n 1", "-n, --count: '1' is not a whole number of at least 2"},
        {"-n 1e3", "-n, --count: '1e3' is not a whole number of at least 2"},
        {"-n +3", "-n, --count: '+3' is not a whole number of at least 2"},
        {"-n 4294967296", "-n, --count: '4294967296' is not a whole number of at most 4294967295"},
        {"-n 99999999999999999999",
         "-n, --count: '99999999999999999999' is not a whole number of at most"},
        {"--every never", "--every: 'never' is not a duration such as 10, 500ms or 1m"},
        {"--choose both", "--choose: 'both' is not one of wait sample"},
        {"--match (", "--match: '(' is not a regular expression"},
        {"-p 7", "-p, --pid: not there yet"},
        {"--pid=7", "-p, --pid: not there yet"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(parsed_release) struct parsed parsed;
        parse(cases[i].line, false, &parsed);
        assert_int_equal(parsed.outcome, OPTIONS_WRONG);
        if (strncmp(parsed.info.text, cases[i].said, strlen(cases[i].said)) != 0) {
            fail_msg("\"%s\": says \"%s\", not \"%s\"", cases[i].line, parsed.info.text,
                     cases[i].said);
        }
    }
}

static void durations_have_units_and_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
        uint64_t ms;
    } cases[] = {
        {"10", true, 10000},   {"500ms", true, 500}, {"1m", true, 60000}, {"1min", true, 60000},
        {"2h", true, 7200000}, {"0", true, 0},       {"0.25", true, 250}, {"1.5s", true, 1500},
        {"366000h", false, 0}, {"1e300h", false, 0}, {"-1", false, 0},    {" 1", false, 0},
        {"nan", false, 0},     {"inf", false, 0},    {"0x10", false, 0},  {"1 s", true, 1000},
        {"s", false, 0},       {"", false, 0},       {"1sm", false, 0},   {".", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t ms = 0;
        bool is_good = duration_parse(cases[i].text, &ms);
        if (is_good != cases[i].is_good || ms != cases[i].ms) {
            fail_msg("\"%s\": %d, %lu ms", cases[i].text, is_good, (unsigned long)ms);
        }
    }
}

static void sizes_have_units_and_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
        uint64_t bytes;
    } cases[] = {
        {"0", true, 0},
        {"7", true, 7},
        {"7B", true, 7},
        {"3k", true, 3072},
        {"3K", true, 3072},
        {"3KiB", true, 3072},
        {"3kB", true, 3000},
        {"3KB", true, 3000},
        {"2M", true, 2097152},
        {"2MiB", true, 2097152},
        {"2MB", true, 2000000},
        {"5G", true, 5368709120},
        {"5GiB", true, 5368709120},
        {"5GB", true, 5000000000},
        {"1T", true, 1099511627776},
        {"1TiB", true, 1099511627776},
        {"1.5MiB", true, 1572864},
        {"0.5kB", true, 500},
        {"9000000T", false, 0},
        {"1mib", false, 0},
        {"MiB", false, 0},
        {"-1K", false, 0},
        {"1 K", true, 1024},
        {"1.5 MiB", true, 1572864},
        {"1  K", false, 0},
        {"1 ", false, 0},
        {"1\tK", false, 0},
        {"1KK", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t bytes = 0;
        bool is_good = size_parse(cases[i].text, &bytes);
        if (is_good != cases[i].is_good || bytes != cases[i].bytes) {
            fail_msg("\"%s\": %d, %lu bytes", cases[i].text, is_good, (unsigned long)bytes);
        }
    }
}

static void numbers_and_percentages_have_bounds(void **state)
{
    (void)state;
    static const struct {
        value_parse *parse;
        const char *text;
        bool is_good;
        uint64_t value;
    } cases[] = {
        {count_parse, "0", true, 0},
        {count_parse, "1,000,000", true, 1000000},
        {count_parse, "1_000", true, 1000},
        {count_parse, "999999999999999999", true, 999999999999999999},
        {count_parse, "1000000000000000000", false, 0},
        {count_parse, "", false, 0},
        {count_parse, ",1", false, 0},
        {count_parse, "1,", false, 0},
        {count_parse, "1,,0", false, 0},
        {count_parse, "1 0", false, 0},
        {count_parse, "-1", false, 0},
        {count_parse, "1.5", false, 0},
        {percent_parse, "5%", true, 500},
        {percent_parse, "5", true, 500},
        {percent_parse, "0.5%", true, 50},
        {percent_parse, "0.014", true, 1},
        {percent_parse, "0.016", true, 2},
        {percent_parse, "1000000%", true, 100000000},
        {percent_parse, "1000000.01%", false, 0},
        {percent_parse, "5 %", true, 500},
        {percent_parse, "%", false, 0},
        {duration_parse, "8784h", true, 366 * UINT64_C(86400000)}, // a year
        {duration_parse, "8784.001h", false, 0},
        {duration_parse, "7d", true, 604800000},
        {duration_parse, "0.4ms", true, 0},
        {duration_parse, "0.6ms", true, 1},
        {size_parse, "0.4", true, 0},
        {size_parse, "0.6", true, 1},
        {size_parse, "9000000000000000000", true, UINT64_C(9000000000000000000)},
        {size_parse, "9000000000000002048", false, 0},
        {size_parse, "1e3", true, 1000},
        {size_parse, "0x10", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t value = 0;
        const bool is_good = cases[i].parse(cases[i].text, &value);
        if (is_good != cases[i].is_good || value != cases[i].value) {
            fail_msg("\"%s\": %d, %lu", cases[i].text, is_good, (unsigned long)value);
        }
    }
}

static void ranges_have_two_ends(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
        uint64_t low;
        uint64_t high;
    } ranges[] = {
        {"64..4096", true, 64, 4096},
        {"64..64", true, 64, 64},
        {"64..63", false, 0, 0},
        {"512", true, 512, 512},
        {"1k..", true, 1024, UINT64_MAX},
        {"..10", true, 0, 10},
        {"..", false, 0, 0},
        {"", false, 0, 0},
        {"1..x", false, 0, 0},
        {"x..1", false, 0, 0},
        {"1..2..3", false, 0, 0},
        {"0000000000000000000000000000001..2", true, 1, 2},   // 31 digits
        {"00000000000000000000000000000001..2", false, 0, 0}, // 32
    };
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        struct value_range range = {0};
        const bool is_good = range_parse(ranges[i].text, size_parse, &range);
        if (is_good != ranges[i].is_good || range.low != ranges[i].low ||
            range.high != ranges[i].high || range.is_set != is_good) {
            fail_msg("\"%s\": %d, %lu to %lu", ranges[i].text, is_good, (unsigned long)range.low,
                     (unsigned long)range.high);
        }
    }
}

static void the_help_fits_a_terminal_and_hides_what_is_hidden(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    options_print((struct option_table){.specs = specs, .count = ARRAY_LEN(specs)}, out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "  -t, --text TEXT           a text\n"));
    assert_non_null(strstr(text, "      --every=TIME          a duration, explained with"));
    assert_non_null(strstr(text, "  -h, --help"));
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "pid"));
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        assert_true(strlen(line) <= 80);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_reach_their_fields),
        cmocka_unit_test(operands_end_the_options_unless_they_may_mix),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(durations_have_units_and_bounds),
        cmocka_unit_test(sizes_have_units_and_bounds),
        cmocka_unit_test(numbers_and_percentages_have_bounds),
        cmocka_unit_test(ranges_have_two_ends),
        cmocka_unit_test(the_help_fits_a_terminal_and_hides_what_is_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
