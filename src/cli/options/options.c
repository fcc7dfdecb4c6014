// SPDX-License-Identifier: MIT
// options: converts the tables of options.h for getopt_long, and its results to fields.
#include "cli/options/options.h"

#include <getopt.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/options/spelling.h"
#include "host/text/number.h"
#include "profile/model/cost.h"
#include "profile/select/name_regex.h"

enum {
    OPTIONS_MAX = 64,
    LONG_ONLY_BASE = 256, // getopt_long's value of option n is this + n
    HELP_COLUMN = 28,
    HELP_WIDTH = 80,
};

static const struct option_spec help_option = OPTION('h', "help", FLAG, NULL, 0, "show this text");

static const struct option_spec no_config_option =
    OPTION(0, "no-config", FLAG, NULL, 0, "no options from config.toml and CAIRN_OPTIONS");

const struct option_spec *const options_of_all[] = {&no_config_option, &help_option, NULL};

// The arguments of getopt_long.
struct getopt_tables {
    char letters[2 * OPTIONS_MAX + 8];
    struct option names[OPTIONS_MAX + ARRAY_LEN(options_of_all)];
};

static bool takes_value(const struct option_spec *spec)
{
    return spec->value != NULL;
}

static void add_option(struct getopt_tables *tables, const struct option_spec *spec, size_t index)
{
    tables->names[index] = (struct option){
        .name = spec->name,
        .has_arg = spec->when_alone != NULL ? optional_argument
                   : takes_value(spec)      ? required_argument
                                            : no_argument,
        .val = LONG_ONLY_BASE + (int)index,
    };
    if (spec->letter != '\0') {
        size_t len = strlen(tables->letters);
        tables->letters[len++] = spec->letter;
        if (takes_value(spec)) {
            tables->letters[len++] = ':';
        }
        tables->letters[len] = '\0';
    }
}

size_t options_count(struct option_table table)
{
    size_t count = table.count;
    for (size_t i = 0; i < OPTION_GROUPS_MAX; i++) {
        count += table.shared[i].count;
    }
    return count;
}

const struct option_spec *options_at(struct option_table table, size_t index)
{
    if (index < table.count) {
        return &table.specs[index];
    }
    index -= table.count;
    size_t group = 0;
    while (index >= table.shared[group].count) {
        index -= table.shared[group++].count;
    }
    return &table.shared[group].specs[index];
}

// Begin a scan of a command line: next_option() uses `tables`.
// "+": stop at the first operand. ":": distinguish a missing value from an unknown option.
static void begin_scan(struct option_table table, struct getopt_tables *tables)
{
    optind = 0; // glibc: restart the scan
    opterr = 0;
    *tables = (struct getopt_tables){.letters = "+:"};
    if (table.follows_operands) {
        tables->letters[0] = ':';
        tables->letters[1] = '\0';
    }
    size_t count = options_count(table);
    for (size_t i = 0; i < count; i++) {
        add_option(tables, options_at(table, i), i);
    }
    for (size_t i = 0; options_of_all[i] != NULL; i++) {
        add_option(tables, options_of_all[i], count + i);
    }
}

static const struct option_spec *find_spec(struct option_table table, int value)
{
    size_t count = options_count(table);
    if (value >= LONG_ONLY_BASE) {
        size_t index = (size_t)(value - LONG_ONLY_BASE);
        return index < count ? options_at(table, index) : options_of_all[index - count];
    }
    for (size_t i = 0; i < count; i++) {
        if (options_at(table, i)->letter == value) {
            return options_at(table, i);
        }
    }
    return &help_option;
}

// Return getopt_long's value, which is -1 at the end. *spec is NULL there and for a wrong word.
static int next_option(struct option_table table,
                       const struct getopt_tables *tables,
                       int argc,
                       char **argv,
                       const struct option_spec **spec)
{
    const int value = getopt_long(argc, argv, tables->letters, tables->names, NULL);
    *spec = value == -1 || value == '?' || value == ':' ? NULL : find_spec(table, value);
    return value;
}

// Return the field that takes the option's value.
static void *field_of(struct option_table table, const struct option_spec *spec, void *fields)
{
    size_t offset = spec->offset;
    for (size_t i = 0; i < OPTION_GROUPS_MAX; i++) {
        const struct option_group *group = &table.shared[i];
        if (spec >= group->specs && spec < group->specs + group->count) {
            offset += group->offset;
        }
    }
    return (char *)fields + offset;
}

static bool parse_count(const char *text, uint32_t minimum, uint32_t *out)
{
    uint64_t number;
    if (!number_parse(text, UINT32_MAX, &number) || number < minimum) {
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

// "--limit", or "-n, --limit" for an option with a letter.
struct option_label {
    char text[64];
};

static struct option_label label_of(const struct option_spec *spec)
{
    struct option_label label;
    if (spec->letter != '\0') {
        // The names of our own options fit.
        (void)snprintf(label.text, sizeof(label.text), "-%c, --%s", spec->letter, spec->name);
    } else {
        (void)snprintf(label.text, sizeof(label.text), "--%s", spec->name);
    }
    return label;
}

static enum err wrong_value(const struct option_spec *spec,
                            const char *text,
                            const char *expected,
                            struct err_info *info)
{
    return err_set(info, ERR_INVALID, "%s: '%.100s' is not %s", label_of(spec).text, text,
                   expected);
}

static enum err check_regex(const struct option_spec *spec, const char *text, struct err_info *info)
{
    CLEANUP(name_regex_release) struct name_regex regex = {0};
    const struct option_label label = label_of(spec);
    return name_regex_compile(&regex, text, label.text, info);
}

static MUST_USE enum err store_choice(const struct option_spec *spec,
                                      const char *text,
                                      const char **out,
                                      struct err_info *info)
{
    char expected[256] = "one of";
    for (const char *const *choice = spec->choices; *choice != NULL; choice++) {
        if (strcmp(*choice, text) == 0) {
            *out = text;
            return ERR_OK;
        }
        size_t len = strlen(expected);
        (void)snprintf(expected + len, sizeof(expected) - len, " %s", *choice); // may truncate
    }
    return wrong_value(spec, text, expected, info);
}

// Options that one function parses, and the expected value for error messages.
static const struct value_kind {
    value_parse *parse;
    value_parse *parse_ends; // of a range
    const char *expected;
} value_kinds[] = {
    [OPTION_DURATION_MS] = {.parse = duration_parse,
                            .expected = "a duration such as 10, 500ms or 1m"},
    [OPTION_SIZE] = {.parse = size_parse, .expected = "a size such as 4096, 64KiB or 1.5GiB"},
    [OPTION_PERCENT] = {.parse = percent_parse, .expected = "a percentage such as 5% or 0.5%"},
    [OPTION_SIZE_RANGE] = {.parse_ends = size_parse,
                           .expected = "a range of sizes such as 64..4096, 1MiB.. or ..1KiB"},
    [OPTION_TIME_RANGE] = {.parse_ends = duration_parse,
                           .expected = "a range of durations such as 10ms..2s, 1m.. or ..1ms"},
};

static MUST_USE enum err
store_cost(const struct option_spec *spec, const char *text, enum cost *out, struct err_info *info)
{
    char expected[256] = "one of";
    enum cost cost = cost_find(text);
    if (cost != COST_COUNT) {
        *out = cost;
        return ERR_OK;
    }
    for (int i = 0; i < COST_COUNT; i++) {
        size_t len = strlen(expected);
        (void)snprintf(expected + len, sizeof(expected) - len, " %s",
                       cost_get_info((enum cost)i)->option); // truncated if too long
    }
    return wrong_value(spec, text, expected, info);
}

static MUST_USE enum err
store_value(const struct option_spec *spec, const char *text, void *field, struct err_info *info)
{
    const struct value_kind *kind = &value_kinds[spec->kind];
    bool is_good =
        kind->parse != NULL ? kind->parse(text, field) : range_parse(text, kind->parse_ends, field);
    return is_good ? ERR_OK : wrong_value(spec, text, kind->expected, info);
}

static MUST_USE enum err
store_count(const struct option_spec *spec, const char *text, void *field, struct err_info *info)
{
    char expected[64];
    if (parse_count(text, spec->minimum, field)) {
        return ERR_OK;
    }
    uint64_t small;
    const bool is_large = text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' &&
                          !number_parse(text, UINT32_MAX, &small);
    (void)snprintf(expected, sizeof(expected), "a whole number of at %s %u",
                   is_large ? "most" : "least",
                   is_large ? UINT32_MAX : spec->minimum); // always fits
    return wrong_value(spec, text, expected, info);
}

static MUST_USE enum err store_choice_or_value(const struct option_spec *spec,
                                               const char *text,
                                               void *field,
                                               struct err_info *info)
{
    switch (spec->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return ERR_OK;
    case OPTION_NAME:
    case OPTION_TEXT:
        if (spec->kind == OPTION_NAME && text[0] == '\0') {
            return err_set(info, ERR_INVALID, "%s: the name is empty", label_of(spec).text);
        }
        *(const char **)field = text;
        return ERR_OK;
    case OPTION_COUNT:
        return store_count(spec, text, field, info);
    case OPTION_CHOICE:
        return store_choice(spec, text, field, info);
    case OPTION_REGEX:
        TRY(check_regex(spec, text, info));
        *(const char **)field = text;
        return ERR_OK;
    case OPTION_COST:
        return store_cost(spec, text, field, info);
    case OPTION_DURATION_MS:
    case OPTION_SIZE:
    case OPTION_PERCENT:
    case OPTION_SIZE_RANGE:
    case OPTION_TIME_RANGE:
        return store_value(spec, text, field, info);
    case OPTION_EACH: {
        struct option_word word = {.spec = spec, .text = text};
        return option_word_vec_push(field, word);
    }
    case OPTION_REFUSED:
        return err_set(info, ERR_UNSUPPORTED, "%s: %s", label_of(spec).text, spec->help);
    }
    return ERR_OK;
}

// Return the name of the option that a mistyped one is nearest to, without its value, or NULL.
static const char *near_option(struct option_table table, const char *typed)
{
    char name[SPELLING_LEN_MAX + 1] = "";
    const size_t length = strcspn(typed, "=");
    const char *near = NULL;
    unsigned near_distance = SPELLING_DISTANCE_MAX + 1;
    if (length > SPELLING_LEN_MAX) {
        return NULL;
    }
    memcpy(name, typed, length);
    for (size_t i = 0; i < options_count(table); i++) {
        const struct option_spec *spec = options_at(table, i);
        const unsigned distance = spelling_distance(name, spec->name);
        if (!spec->is_hidden && spec->kind != OPTION_REFUSED && distance < near_distance) {
            near = spec->name;
            near_distance = distance;
        }
    }
    return near;
}

// Name the word that getopt_long refused. getopt_long has advanced past it, unless it is one of
// several clustered letters.
static enum err
wrong_option(struct option_table table, int value, char **argv, struct err_info *info)
{
    const char *word = argv[optind - 1];
    bool is_long = strncmp(word, "--", 2) == 0;
    if (value == ':') {
        return is_long ? err_set(info, ERR_INVALID, "%.100s needs a value", word)
                       : err_set(info, ERR_INVALID, "-%c needs a value", optopt);
    }
    if (is_long && optopt >= LONG_ONLY_BASE) {
        return err_set(info, ERR_INVALID, "%.100s takes no value", word);
    }
    const char *near = is_long ? near_option(table, word + 2) : NULL;
    return near != NULL
               ? err_set(info, ERR_INVALID, "unknown option %.100s; did you mean --%s?", word, near)
           : is_long ? err_set(info, ERR_INVALID, "unknown option %.100s", word)
                     : err_set(info, ERR_INVALID, "unknown option -%c", optopt);
}

enum options_outcome options_parse(struct option_table table,
                                   int argc,
                                   char **argv,
                                   void *fields,
                                   int *first_operand,
                                   struct err_info *info)
{
    struct getopt_tables tables;
    const struct option_spec *spec;
    int value;
    begin_scan(table, &tables);
    while ((value = next_option(table, &tables, argc, argv, &spec)) != -1) {
        if (spec == NULL) {
            (void)wrong_option(table, value, argv,
                               info); // always an error, which the outcome returns
            return OPTIONS_WRONG;
        }
        if (spec == &help_option) {
            return OPTIONS_HELP;
        }
        const char *text = optarg != NULL ? optarg : spec->when_alone;
        if (spec != &no_config_option &&
            store_choice_or_value(spec, text, field_of(table, spec, fields), info) != ERR_OK) {
            return OPTIONS_WRONG;
        }
    }
    *first_operand = optind;
    return OPTIONS_OK;
}

void options_release(struct option_table table, void *fields)
{
    for (size_t i = 0; i < options_count(table); i++) {
        const struct option_spec *spec = options_at(table, i);
        if (spec->kind == OPTION_EACH) { // several may share a field
            option_word_vec_release(field_of(table, spec, fields));
        }
    }
}

enum err mistakes_check(const struct mistake *mistakes, size_t count, struct err_info *info)
{
    for (size_t i = 0; i < count; i++) {
        if (mistakes[i].is_made) {
            return err_set(info, ERR_INVALID, "%s", mistakes[i].sentence);
        }
    }
    return ERR_OK;
}

const struct option_spec *options_find(struct option_table table, const char *name)
{
    for (size_t i = 0; i < options_count(table); i++) {
        if (strcmp(options_at(table, i)->name, name) == 0) {
            return options_at(table, i);
        }
    }
    return NULL;
}

enum err
options_check(struct option_table table, const char *name, const char *value, struct err_info *info)
{
    const struct option_spec *spec = options_find(table, name);
    union {
        bool flag;
        uint32_t count;
        uint64_t number;
        const char *text;
        enum cost cost;
        struct value_range range;
    } unused;
    if (spec == NULL) {
        return err_set(info, ERR_NOT_FOUND, "unknown option '%.100s'", name);
    }
    if (takes_value(spec) != (value != NULL)) {
        return err_set(info, ERR_INVALID,
                       takes_value(spec) ? "%s needs a value" : "%s takes no value",
                       label_of(spec).text);
    }
    const char *text = value != NULL ? value : ""; // flags have none
    return spec->kind == OPTION_EACH ? ERR_OK : store_choice_or_value(spec, text, &unused, info);
}

bool options_refuse_config(struct option_table table, int argc, char **argv)
{
    struct getopt_tables tables;
    const struct option_spec *spec;
    begin_scan(table, &tables);
    while (next_option(table, &tables, argc, argv, &spec) != -1) {
        if (spec != NULL &&
            strcmp(spec->name, no_config_option.name) == 0) { // a command may have its own
            return true;
        }
    }
    return false;
}

// Print words from column `at` on. Further lines begin at HELP_COLUMN.
static void print_wrapped(FILE *out, const char *text, int at)
{
    while (*text != '\0') {
        int word = (int)strcspn(text, " ");
        if (at > HELP_COLUMN && at + 1 + word > HELP_WIDTH) {
            (void)fputc('\n', out); // output errors are found when the stream is closed
            at = 0;
        }
        if (at < HELP_COLUMN) {
            (void)fprintf(out, "%*s", HELP_COLUMN - at, "");
            at = HELP_COLUMN;
        } else if (at > HELP_COLUMN) {
            (void)fputc(' ', out);
            at++;
        }
        (void)fprintf(out, "%.*s", word, text);
        at += word;
        text += word;
        text += strspn(text, " ");
    }
    (void)fputc('\n', out);
}

static void print_option(FILE *out, const struct option_spec *spec)
{
    int at = spec->letter != '\0' ? fprintf(out, "  -%c, --%s", spec->letter, spec->name)
                                  : fprintf(out, "      --%s", spec->name);
    if (takes_value(spec)) {
        at += spec->when_alone != NULL ? fprintf(out, "[=%s]", spec->value)
              : spec->letter != '\0'   ? fprintf(out, " %s", spec->value)
                                       : fprintf(out, "=%s", spec->value);
    }
    if (at > HELP_COLUMN - 2) {
        (void)fputc('\n', out);
        at = 0;
    }
    print_wrapped(out, spec->help, at);
}

void options_print(struct option_table table, FILE *out)
{
    bool has_groups = false;
    for (size_t i = 0; i < options_count(table); i++) {
        const struct option_spec *spec = options_at(table, i);
        if (spec->group != NULL) {
            (void)fprintf(out, "\n%s:\n", spec->group);
            has_groups = true;
        }
        if (!spec->is_hidden && spec->kind != OPTION_REFUSED) {
            print_option(out, spec);
        }
    }
    (void)fputs(has_groups ? "\nAll commands:\n" : "", out);
    for (size_t i = 0; options_of_all[i] != NULL; i++) {
        print_option(out, options_of_all[i]);
    }
}
