// SPDX-License-Identifier: MIT
// cmd_diff: `cairn diff OLD NEW`: what changed between two recordings, and whether it got worse.
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/command.h"
#include "cli/diff_report.h"

struct diff_fields {
    uint32_t site_limit;
    uint32_t stack_limit;
    uint32_t depth_limit;
    enum cost sort;
    uint64_t threshold;
    const char *per;
    struct filter_words filter;
    bool use_full_names;
    bool use_json;
    bool no_color;
};

enum {
    STACKS_IN_TEXT = 1,
    STACKS_IN_JSON = 100, // a function may have a million
};

#define STACKS_UNSET UINT32_MAX

static const struct diff_fields defaults = {.site_limit = 10,
                                            .stack_limit = STACKS_UNSET,
                                            .depth_limit = 24,
                                            .sort = COST_COUNT,
                                            .threshold = 100,
                                            .filter = {.suppresses = true}};

#define FIELD(field) offsetof(struct diff_fields, field)

static const struct option_spec specs[] = {
    {.letter = 'n',
     .name = "limit",
     .kind = OPTION_COUNT,
     .value = "N",
     .help = "functions shown for each cost, 0 for all (10)",
     .offset = FIELD(site_limit)},
    {.letter = 's',
     .name = "stacks",
     .kind = OPTION_COUNT,
     .value = "N",
     .help = "changed call stacks of each function, 0 for all (1; with --json 100)",
     .offset = FIELD(stack_limit)},
    {.name = "max-depth",
     .kind = OPTION_COUNT,
     .value = "N",
     .help = "frames of each stack in the text, 0 for all (24)",
     .offset = FIELD(depth_limit)},
    {.name = "sort",
     .kind = OPTION_COST,
     .value = "COST",
     .help = "compare and judge this cost only: " COST_OPTION_NAMES,
     .offset = FIELD(sort)},
    {.name = "threshold",
     .kind = OPTION_PERCENT,
     .value = "PERCENT",
     .help = "growth that is no finding, as a part of what the whole was before (1%)",
     .offset = FIELD(threshold)},
    {.name = "per",
     .kind = OPTION_TEXT,
     .value = "second|N|OLD:NEW",
     .help = "divide amounts, but not peaks, by the length of each run, or by the work that it "
             "did: N requests both, or OLD and NEW requests",
     .offset = FIELD(per)},
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "write JSON, as docs/format/diff-json.md says",
     .offset = FIELD(use_json)},
    {.name = "full-names",
     .kind = OPTION_FLAG,
     .help = "shorten neither functions nor paths, however long the lines get",
     .offset = FIELD(use_full_names)},
    {.name = "no-color",
     .kind = OPTION_FLAG,
     .help = "no colours on a terminal either; so does the variable NO_COLOR",
     .offset = FIELD(no_color)},
};

static struct diff_options options_of(const struct diff_fields *fields, const struct per *per)
{
    uint32_t stack_limit = fields->stack_limit;
    if (stack_limit == STACKS_UNSET) {
        stack_limit = fields->use_json ? STACKS_IN_JSON : STACKS_IN_TEXT;
    }
    return (struct diff_options){
        .sort = fields->sort,
        .site_limit = fields->site_limit,
        .stack_limit = stack_limit,
        .depth_limit = fields->depth_limit,
        .threshold = fields->threshold,
        .per = *per,
        .use_full_names = fields->use_full_names,
        .use_color = !fields->no_color && command_use_color(STDOUT_FILENO),
        .width_columns = command_width(STDOUT_FILENO),
    };
}

static int write_diff(const struct diff_report *report, bool use_json)
{
    bool is_for_people = isatty(STDOUT_FILENO) == 1;
    enum err problem =
        use_json
            ? diff_report_write_json(report, is_for_people ? JSON_INDENTED : JSON_COMPACT, stdout)
            : diff_report_write_text(report, stdout);
    if (problem == ERR_NO_MEMORY) {
        struct err_info info;
        (void)err_set(&info, problem, "not enough memory for the comparison"); // told here and now
        return command_error(&info);
    }
    return command_finish_output(report->findings.len > 0 ? STATUS_FOUND : STATUS_OK);
}

static int diff_files(const char *old,
                      const char *new,
                      const struct diff_fields *fields,
                      const struct per *per)
{
    struct err_info info = {0};
    CLEANUP(comparison_release) struct comparison comparison = {0};
    if (comparison_open(&comparison, new, old, &fields->filter, per, &info) != ERR_OK) {
        return command_error(&info);
    }
    const struct diff_options options = options_of(fields, per);
    CLEANUP(diff_report_release) struct diff_report report = {0};
    if (diff_report_build(&comparison, &options, &report, &info) != ERR_OK) {
        return command_error(&info);
    }
    return write_diff(&report, fields->use_json);
}

static int run(int argc, char **argv)
{
    struct err_info info = {0};
    struct diff_fields fields = defaults;
    struct per per = {0};
    int operand;
    int status;
    if (!command_parse(&command_diff, argc, argv, &fields, &operand, &status)) {
        return status;
    }
    if (argc - operand != 2) {
        (void)err_set(&info, ERR_INVALID, "two recordings are compared: OLD and NEW");
        return command_usage_error(&command_diff, &info);
    }
    if (fields.per != NULL && !per_parse(fields.per, &per)) {
        (void)err_set(&info, ERR_INVALID,
                      "--per: \"%.100s\" is neither second nor a count such as 1000 or 900:1000",
                      fields.per);
        return command_usage_error(&command_diff, &info);
    }
    if (filter_words_check(&fields.filter, &info) != ERR_OK) {
        return command_usage_error(&command_diff, &info);
    }
    return diff_files(argv[operand], argv[operand + 1], &fields, &per);
}

const struct command command_diff = {
    .name = "diff",
    .summary = "compare two recordings, and say whether it got worse",
    .synopsis = "[options] OLD NEW",
    .description =
        "Compares two recordings of a program, or of two builds of it, by the functions\n"
        "on each call stack: addresses, line numbers and what was inlined may differ.\n"
        "For each cost, the functions that changed most are shown: new, gone, grown or\n"
        "shrunk. The last line is the verdict. The exit status is 0 if nothing grew\n"
        "beyond the threshold, 1 if something did, 2 if the recordings cannot be read.\n",
    .options = {.specs = specs,
                .count = ARRAY_LEN(specs),
                .shared = FILTER_OPTIONS(diff_fields, filter),
                .follows_operands = true},
    .run = run,
};
