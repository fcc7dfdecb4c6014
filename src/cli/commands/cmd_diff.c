// SPDX-License-Identifier: MIT
// cmd_diff: `cairn diff OLD NEW`: prints what changed between two recordings, and a verdict.
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/diff/diff_report.h"
#include "cli/options/name_options.h"
#include "cli/options/output_words.h"

struct diff_fields {
    struct output_words output;
    enum cost sort;
    uint64_t threshold;
    const char *per;
    struct filter_words filter;
    struct name_words names; // owned
};

enum {
    SITES_BY_DEFAULT = 10,
    STACKS_IN_TEXT = 1,
};

static const struct diff_fields defaults = {.output = OUTPUT_DEFAULTS,
                                            .sort = COST_COUNT,
                                            .threshold = DIFF_THRESHOLD_USUAL,
                                            .filter = {.suppresses = true}};

#define FIELD(field) offsetof(struct diff_fields, field)

// clang-format off
static const struct option_spec specs[] = {
    OUTPUT_OPTION_LIMIT(diff_fields, "maximum functions per cost; 0: all (default: 10)"),
    OUTPUT_OPTION_STACKS(diff_fields,
                         "maximum changed call stacks per function; 0: all (default: 1; 100 with "
                         "--json)"),
    OUTPUT_OPTION_MAX_DEPTH(diff_fields),
    OPTION(0, "sort", COST, "COST", FIELD(sort), "compare only this cost: " COST_OPTION_NAMES),
    OPTION(0, "threshold", PERCENT, "PERCENT", FIELD(threshold),
           "ignore growth below this share of the old total (default: 1%)"),
    OPTION(0, "per", TEXT, "second|N|OLD:NEW", FIELD(per),
           "divide amounts (not peaks) by the run time, or by the number of requests served: N by "
           "both, or OLD and NEW"),
    OUTPUT_OPTION_JSON(diff_fields),
    OUTPUT_OPTION_CSV(diff_fields, "the changes"),
    OUTPUT_OPTION_FULL_NAMES(diff_fields, ""),
    OUTPUT_OPTION_NO_COLOR(diff_fields),
};
// clang-format on

static struct diff_options options_of(const struct diff_fields *fields, const struct per *per)
{
    return (struct diff_options){
        .sort = fields->sort,
        .site_limit = output_site_limit(&fields->output, SITES_BY_DEFAULT),
        .stack_limit = output_stack_limit(&fields->output, STACKS_IN_TEXT),
        .depth_limit = fields->output.depth_limit,
        .threshold = fields->threshold,
        .per = *per,
        .use_full_names = fields->output.use_full_names,
        .use_color = !fields->output.no_color && command_use_color(STDOUT_FILENO),
        .width_columns = command_width(STDOUT_FILENO),
    };
}

static int write_diff(const struct diff_report *report, const struct output_words *output)
{
    bool is_for_people = isatty(STDOUT_FILENO) == 1;
    enum err problem =
        output->use_csv ? diff_report_write_csv(report, stdout)
        : output->use_json
            ? diff_report_write_json(report, is_for_people ? JSON_INDENTED : JSON_COMPACT, stdout)
            : diff_report_write_text(report, stdout);
    if (problem == ERR_NO_MEMORY) {
        return command_error(&(struct err_info){0});
    }
    return command_finish_output(report->findings.len > 0 ? STATUS_FOUND : STATUS_OK);
}

static int diff_files(const char *old,
                      const char *new,
                      const struct diff_fields *fields,
                      const struct per *per)
{
    struct err_info info = {0};
    CLEANUP(name_places_release) struct name_places names = {0};
    CLEANUP(comparison_release) struct comparison comparison = {0};
    if (name_places_init(&names, &fields->names, &info) != ERR_OK ||
        comparison_open(&comparison, new, old, &names.sources, &fields->filter, per, &info) !=
            ERR_OK) {
        return command_error(&info);
    }
    const struct diff_options options = options_of(fields, per);
    CLEANUP(diff_report_release) struct diff_report report = {0};
    if (diff_report_build(&comparison, &options, &report, &info) != ERR_OK) {
        return command_error(&info);
    }
    return write_diff(&report, &fields->output);
}

static void fields_release(struct diff_fields *fields)
{
    name_words_release(&fields->names);
}

static int run(int argc, char **argv)
{
    struct err_info info = {0};
    CLEANUP(fields_release) struct diff_fields fields = defaults;
    struct per per = {0};
    int operand;
    int status;
    if (!command_parse(&command_diff, argc, argv, &fields, &operand, &status)) {
        return status;
    }
    if (argc - operand != 2) {
        (void)err_set(&info, ERR_INVALID, "two recordings are required: OLD and NEW");
        return command_usage_error(&command_diff, &info);
    }
    if (fields.per != NULL && !per_parse(fields.per, &per)) {
        (void)err_set(&info, ERR_INVALID,
                      "--per: '%.100s' is not second or a count such as 1000 or 900:1000",
                      fields.per);
        return command_usage_error(&command_diff, &info);
    }
    if (filter_words_check(&fields.filter, &info) != ERR_OK ||
        output_words_check(&fields.output, &info) != ERR_OK) {
        return command_usage_error(&command_diff, &info);
    }
    return diff_files(argv[operand], argv[operand + 1], &fields, &per);
}

const struct command command_diff = {
    .name = "diff",
    .summary = "compare two recordings",
    .synopsis = "[options] OLD NEW",
    .description = "Compare two recordings of a program or of two builds of it. Call stacks are\n"
                   "matched by function, so addresses, line numbers and inlining may differ. For\n"
                   "each cost, the functions that changed most are listed as new, gone, grown or\n"
                   "shrunk. The last line is the verdict. The exit status is 0 if nothing grew\n"
                   "beyond the threshold, 1 if something did, 2 if a recording cannot be read.\n",
    .options = {.specs = specs,
                .count = ARRAY_LEN(specs),
                .shared = {FILTER_OPTIONS(diff_fields, filter), NAME_OPTIONS(diff_fields, names)},
                .follows_operands = true},
    .run = run,
};
