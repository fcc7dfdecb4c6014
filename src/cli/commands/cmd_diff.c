// SPDX-License-Identifier: MIT
// cmd_diff: `cairn diff OLD NEW`: prints what changed between two recordings, and a verdict.

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
    const char *between;
    bool shows_wrappers;
    struct filter_words filter;
    struct name_words names;
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
    OPTION(0, "between", TEXT, "FROM", FIELD(between),
           "compare two parts of FILE: the heap at the marks or times FROM and TO, or two ranges "
           "A..B"),
    OPTION(0, "show-wrappers", FLAG, NULL, FIELD(shows_wrappers),
           "show every frame of libraries and of wrappers of an allocator in stacks"),
    OUTPUT_OPTION_JSON(diff_fields),
    OUTPUT_OPTION_CSV(diff_fields, "the changes"),
    OUTPUT_OPTION_FULL_NAMES(diff_fields, ""),
    OUTPUT_OPTION_WIDTH(diff_fields),
    OUTPUT_OPTION_NO_COLOR(diff_fields),
};
// clang-format on

// `operands` are OLD and NEW, or FILE and TO.
static MUST_USE enum err diff_files(char **operands,
                                    const struct diff_fields *fields,
                                    const struct per *per,
                                    bool *has_grown,
                                    struct err_info *info)
{
    CLEANUP(name_places_release) struct name_places names = {0};
    CLEANUP(comparison_release) struct comparison comparison = {0};
    TRY(name_places_init(&names, &fields->names, info));
    struct diff_options options = diff_options_of(&fields->output, fields->sort);
    if (fields->between != NULL) {
        options.between =
            (struct between){.parts = {[SIDE_OLD] = fields->between, [SIDE_NEW] = operands[1]}};
        TRY(comparison_open_between(&comparison, operands[0], &options.between, &names.sources,
                                    &fields->filter, per, info));
    } else {
        TRY(comparison_open(&comparison, operands[1], operands[0], &names.sources, &fields->filter,
                            per, info));
    }
    options.threshold = fields->threshold;
    options.shows_wrappers = fields->shows_wrappers;
    options.per = *per;
    CLEANUP(diff_report_release) struct diff_report report = {0};
    TRY(diff_report_build(&comparison, &options, &report, info));
    *has_grown = diff_has_grown(&report.findings);
    return diff_report_print(&report, &fields->output);
}

static int run(void *context, int count, char **operands)
{
    const struct diff_fields *fields = context;
    struct err_info info = {0};
    struct per per = {0};
    if (count != 2) {
        return command_refuse(&command_diff,
                              fields->between != NULL
                                  ? "--between needs one recording and a second mark or time: "
                                    "FILE --between FROM TO"
                                  : "two recordings are required: OLD and NEW");
    }
    if (fields->between != NULL && fields->filter.time.is_set) {
        return command_refuse(&command_diff, "--between and --time cannot be combined");
    }
    if (fields->per != NULL && !per_parse(fields->per, &per)) {
        return command_refuse(&command_diff,
                              "--per: '%.100s' is not second or a count such as 1000 or 900:1000",
                              fields->per);
    }
    if (filter_words_check(&fields->filter, &info) != ERR_OK ||
        output_words_check(&fields->output, &info) != ERR_OK) {
        return command_usage_error(&command_diff, &info);
    }
    bool has_grown = false;
    const enum err problem = diff_files(operands, fields, &per, &has_grown, &info);
    return command_end(problem, &info, has_grown ? STATUS_FOUND : STATUS_OK);
}

const struct command command_diff = {
    .name = "diff",
    .summary = "compare two recordings",
    .synopsis = "[options] OLD NEW\n       cairn diff [options] FILE --between FROM TO",
    .description = "Compare two recordings of a program or of two builds of it, or two parts of\n"
                   "one. Call stacks are matched by function, so addresses, line numbers and\n"
                   "inlining may differ. The findings of both come first, each with its verdict:\n"
                   "new, gone, grown, shrunk or same. For each cost, the functions that changed\n"
                   "most are listed in the same way. A function with another name and the same\n"
                   "figures below the same callers is listed as renamed. The last line is the\n"
                   "verdict on the totals. The exit status is 0 if no total grew beyond the\n"
                   "threshold, 1 if one did, 2 if a recording cannot be read.\n",
    .examples = "cairn diff old.cairn new.cairn\n"
                "cairn diff --per 10000 --threshold 2% old.cairn new.cairn\n"
                "cairn diff new.cairn --between warm done\n",
    .options = {.specs = specs,
                .count = ARRAY_LEN(specs),
                .shared = {FILTER_OPTIONS(diff_fields, filter), NAME_OPTIONS(diff_fields, names)},
                .follows_operands = true},
    .fields_bytes = sizeof(struct diff_fields),
    .defaults = &defaults,
    .run = run,
};
