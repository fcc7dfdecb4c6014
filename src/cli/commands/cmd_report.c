// SPDX-License-Identifier: MIT
// cmd_report: `cairn report FILE`: prints a recording as text, JSON or CSV on stdout.
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/diff/comparison.h"
#include "cli/diff/diff_report.h"
#include "cli/options/filter_options.h"
#include "cli/options/name_options.h"
#include "cli/options/output_words.h"
#include "cli/report/report.h"
#include "cli/warnings/warnings.h"
#include "formats/import/input_file.h"
#include "profile/select/name_regex.h"

struct report_fields {
    struct output_words output;
    enum cost sort;
    struct filter_words filter;
    struct name_words names;
    bool lists_blocks;
    const char *tree;
    const char *group_by;
    const char *callers;
    const char *baseline; // the older recording of --diff
    bool use_functions;
    bool use_histogram;
    bool shows_wrappers;
    bool sections[REPORT_COSTS + 2]; // in the order of section_bits
};

static const uint32_t section_bits[] = {REPORT_PEAK,   REPORT_ALLOCATIONS, REPORT_TEMPORARY,
                                        REPORT_LEAKED, REPORT_RSS,         REPORT_ALL};

enum {
    STACKS_IN_TEXT = 1,
    SITES_BY_DEFAULT = 10,
};

static const struct report_fields defaults = {
    .output = OUTPUT_DEFAULTS, .sort = COST_COUNT, .filter = {.suppresses = true}};

static const char *const tree_choices[] = {"top-down", "bottom-up", NULL};
static const char *const group_choices[] = {"function", "file", "module", "thread",
                                            "process",  "size", NULL};

#define FIELD(field) offsetof(struct report_fields, field)

#define SECTION_OPTION(letter, name, index, words) \
    OPTION(letter, name, FLAG, NULL, FIELD(sections) + (index) * sizeof(bool), words)

// clang-format off
static const struct option_spec specs[] = {
    OUTPUT_OPTION_LIMIT(report_fields,
                        "maximum call sites per section, or lines of another view; 0: all "
                        "(default: 10; 60 for trees, 20 for functions and groups)"),
    OUTPUT_OPTION_STACKS(report_fields,
                         "maximum call stacks per call site; 0: all (default: 1; 100 with --json)"),
    OUTPUT_OPTION_MAX_DEPTH(report_fields),
    SECTION_OPTION('p', "peak", 0, "print the call sites with the most memory at the peak"),
    SECTION_OPTION('a', "allocations", 1, "print the call sites with the most allocations"),
    SECTION_OPTION('T', "temporary", 2, "print those with the most temporary allocations"),
    SECTION_OPTION('l', "leaks", 3, "print those with the most leaked memory, and its growth"),
    SECTION_OPTION('r', "rss", 4, "print what resident memory consisted of"),
    SECTION_OPTION('\0', "all", 5, "print all sections, and processes, marks, hooked functions and "
                   "notes"),
    OPTION(0, "sort", COST, "COST", FIELD(sort),
           "print one section only, sorted by: " COST_OPTION_NAMES),
    OPTION(0, "blocks", FLAG, NULL, FIELD(lists_blocks),
           "list the blocks that were live at the end and at the peak, largest first (requires "
           "record --blocks)"),
    OPTION(0, "group-by", CHOICE, "WHAT", FIELD(group_by),
           "print costs by function, file, module, thread, process or size instead of call sites",
           .choices = group_choices),
    OPTION(0, "functions", FLAG, NULL, FIELD(use_functions),
           "print inclusive and self cost per function"),
    OPTION(0, "callers", REGEX, "REGEX", FIELD(callers),
           "print callers and callees of the matching functions"),
    OPTION(0, "tree", CHOICE, "top-down|bottom-up", FIELD(tree),
           "print the stacks as a tree, from the thread entries down or from the call sites up",
           .choices = tree_choices),
    OPTION(0, "histogram", FLAG, NULL, FIELD(use_histogram),
           "print histograms of block sizes and lifetimes"),
    OPTION(0, "diff", NAME, "OLD", FIELD(baseline),
           "print the changes since the recording OLD, as cairn diff does; also with --tree, "
           "--functions and --callers"),
    OPTION(0, "show-wrappers", FLAG, NULL, FIELD(shows_wrappers),
           "show every frame of libraries and of wrappers of an allocator in stacks, trees and "
           "tables of functions"),
    OUTPUT_OPTION_JSON(report_fields),
    OUTPUT_OPTION_CSV(report_fields, "one table, of the section or view,"),
    OUTPUT_OPTION_FULL_NAMES(report_fields, ", and show the frames outside main"),
    OUTPUT_OPTION_WIDTH(report_fields),
    OUTPUT_OPTION_NO_COLOR(report_fields),
};
// clang-format on

static uint32_t sections_of(const struct report_fields *fields)
{
    uint32_t sections = 0;
    for (size_t i = 0; i < ARRAY_LEN(section_bits); i++) {
        sections |= fields->sections[i] ? section_bits[i] : 0;
    }
    return sections;
}

static uint32_t views_of(const struct report_fields *fields)
{
    return (fields->group_by != NULL ? (uint32_t)REPORT_GROUPS : 0) |
           (fields->use_functions ? (uint32_t)REPORT_FUNCTIONS : 0) |
           (fields->callers != NULL ? (uint32_t)REPORT_CALLERS : 0) |
           (fields->tree != NULL ? (uint32_t)REPORT_TREE : 0) |
           (fields->use_histogram ? (uint32_t)REPORT_HISTOGRAMS : 0);
}

static enum cost_group_by group_by_of(const char *name)
{
    int by = 0;
    while (by < COST_GROUPS_BY_COUNT && name != NULL &&
           strcmp(cost_group_by_name((enum cost_group_by)by), name) != 0) {
        by++;
    }
    return (enum cost_group_by)by;
}

static struct report_options options_of(const struct report_fields *fields,
                                        const struct filter *filter)
{
    struct report_options options = {
        .filter = *filter,
        .sort = fields->sort,
        .sections = sections_of(fields),
        .is_data = fields->output.use_json || fields->output.use_csv,
        .site_limit = output_site_limit(&fields->output, SITES_BY_DEFAULT),
        .has_limit = fields->output.site_limit != OUTPUT_UNSET || fields->output.use_csv,
        .stack_limit = output_stack_limit(&fields->output, STACKS_IN_TEXT),
        .depth_limit = fields->output.depth_limit,
        .views = views_of(fields),
        .tree = fields->tree != NULL && strcmp(fields->tree, "bottom-up") == 0 ? CALL_TREE_BOTTOM_UP
                                                                               : CALL_TREE_TOP_DOWN,
        .group_by = group_by_of(fields->group_by),
        .callers = fields->callers,
        .use_full_names = fields->output.use_full_names,
        .shows_wrappers = fields->shows_wrappers,
        .lists_blocks = fields->lists_blocks,
        .use_color = !fields->output.no_color && command_use_color(STDOUT_FILENO),
        .width_columns = output_width(&fields->output),
    };
    // A view in text makes its own tables.
    options.without_stacks = !options.is_data && (report_is_screen(&options) ||
                                                  options.lists_blocks || options.views != 0);
    return options;
}

static MUST_USE enum err
write_report(const struct report *report, const struct output_words *output, struct err_info *info)
{
    enum err problem;
    if (output->use_csv) {
        TRY(report->options->lists_blocks ? report_check_blocks(report, info) : ERR_OK);
        warnings_write(report->profile, "cairn: ", stderr);
        problem = report_write_csv(report, stdout);
    } else if (report->options->lists_blocks && !output->use_json) {
        return report_write_blocks(report, stdout, info);
    } else if (output->use_json) {
        warnings_write(report->profile, "cairn: ", stderr);
        problem = report_write_json(report, command_json_style(), stdout);
        progress_clear(report->options->progress);
    } else {
        report_print_oom(report, "!! ", stdout);
        warnings_write(report->profile, "!! ", stdout);
        problem = report_write_text(report, stdout);
    }
    if (problem == ERR_IO) {
        return ERR_OK; // command_finish_output says it
    }
    return problem == ERR_OK || problem == ERR_NO_MEMORY
               ? problem
               : err_set(info, problem, "--callers: the expression takes too long");
}

// Print the same as `cairn diff OLD FILE`. The exit status has no verdict on the changes: this is a
// report, not a check.
static MUST_USE enum err write_diff(const struct comparison *comparison,
                                    const struct report_options *report_options,
                                    const struct output_words *output,
                                    struct err_info *info)
{
    struct diff_options options = diff_options_of(output, report_options->sort);
    options.shows_wrappers = report_options->shows_wrappers;
    CLEANUP(diff_report_release) struct diff_report report = {0};
    TRY(diff_report_build(comparison, &options, &report, info));
    return diff_report_print(&report, output);
}

// Set *is_empty if nothing matches the filter.
static MUST_USE enum err report_with(const char *path,
                                     const struct report_fields *fields,
                                     bool *is_empty,
                                     struct err_info *info)
{
    CLEANUP(progress_clear) struct progress progress;
    progress_init(&progress, stderr);
    CLEANUP(name_places_release) struct name_places names = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    TRY(name_places_init(&names, &fields->names, info));
    TRY(input_open_profile(path, &names.sources, &progress, &profile, info));
    CLEANUP(applied_filter_release) struct applied_filter applied = {0};
    TRY(filter_words_apply(&fields->filter, &profile->recording, &applied, info));
    struct report_options report_options = options_of(fields, &applied.filter);
    report_options.progress = &progress;
    static const struct per no_unit = {0};
    CLEANUP(comparison_release) struct comparison comparison = {.borrows_new = true};
    if (fields->baseline != NULL) {
        TRY(comparison_init(&comparison, profile, fields->baseline, &names.sources, &fields->filter,
                            &no_unit, info));
        report_options.comparison = &comparison;
        *is_empty = filter_matches_nothing(&comparison.selections[SIDE_NEW],
                                           &comparison.selections[SIDE_OLD]);
        if (report_options.views == 0) {
            return write_diff(&comparison, &report_options, &fields->output, info);
        }
    }
    CLEANUP(report_release) struct report report = {0};
    TRY(report_build(profile, &report_options, &report, info));
    if (fields->baseline == NULL) { // else the comparison has warned
        filter_warn(&report.selection, NULL, &applied.filter);
        *is_empty = filter_matches_nothing(&report.selection, NULL);
    }
    return write_report(&report, &fields->output, info);
}

static MUST_USE enum err check_views(const struct report_fields *fields, struct err_info *info)
{
    if (fields->baseline != NULL && (fields->group_by != NULL || fields->use_histogram)) {
        return err_set(info, ERR_INVALID,
                       "--diff can only be combined with --tree, --functions or --callers");
    }
    if (fields->lists_blocks && (fields->baseline != NULL || views_of(fields) != 0)) {
        return err_set(info, ERR_INVALID, "--blocks cannot be combined with other views");
    }
    TRY(output_words_check(&fields->output, info));
    const uint32_t sections = sections_of(fields);
    const uint32_t wanted = views_of(fields) != 0 ? views_of(fields) : sections;
    if (fields->output.use_csv &&
        ((wanted & (wanted - 1)) != 0 || (fields->sort != COST_COUNT && sections != 0))) {
        return err_set(info, ERR_INVALID, "--csv writes one table: choose one section or view");
    }
    CLEANUP(name_regex_release) struct name_regex regex = {0};
    return fields->callers != NULL ? name_regex_compile(&regex, fields->callers, "--callers", info)
                                   : ERR_OK;
}

static int run(void *context, int count, char **operands)
{
    const struct report_fields *fields = context;
    struct err_info info = {0};
    (void)count; // one FILE
    if (filter_words_check(&fields->filter, &info) != ERR_OK ||
        check_views(fields, &info) != ERR_OK) {
        return command_usage_error(&command_report, &info);
    }
    bool is_empty = false;
    const enum err problem = report_with(operands[0], fields, &is_empty, &info);
    return command_end(problem, &info, is_empty ? STATUS_FOUND : STATUS_OK);
}

const struct command command_report = {
    .name = "report",
    .summary = "print where a recorded program allocated its memory",
    .synopsis = "[options] FILE",
    .description =
        "Print the recording FILE on one screen: the totals, what deserves attention, and\n"
        "the call sites with the most memory at the peak, the most allocations, the most\n"
        "temporary allocations and the most leaked memory. -p, -a, -T, -l and -r print a\n"
        "section in detail, with call stacks, innermost frame first; --all prints all.\n"
        "FILE may be still growing, truncated or damaged: the report shows what can be\n"
        "read and says at the top what is missing.\n\n"
        "The call site is the innermost frame that does not merely wrap an allocation, as\n"
        "operator new, standard containers and strdup do. An allocation is temporary if\n"
        "its thread frees the block with its very next heap operation.\n\n"
        "The exit status is 1 if nothing matches the filter, and 2 for an error.\n",
    .examples = "cairn report run.cairn\n"
                "cairn report -l --suppressions rules.txt run.cairn\n"
                "cairn report --functions --filter-function '^cache::' run.cairn\n"
                "cairn report --tree bottom-up --sort allocations run.cairn\n",
    .options = {.specs = specs,
                .count = ARRAY_LEN(specs),
                .shared = {FILTER_OPTIONS(report_fields, filter),
                           NAME_OPTIONS(report_fields, names)},
                .follows_operands = true},
    .takes_one_file = true,
    .fields_bytes = sizeof(struct report_fields),
    .defaults = &defaults,
    .run = run,
};
