// SPDX-License-Identifier: MIT
// cmd_check: `cairn check [budgets] FILE` or `-- PROGRAM ARGS`: holds a program to its budgets.
//
//   program --record_program--> a recording in a temporary folder --check_evaluate--> results
//
// The exit status is 0 if all budgets were kept, 1 if one was broken or the program failed, and 2
// if the check could not run. The temporary recording is removed; --output keeps it.
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/check/check_results.h"
#include "cli/commands/commands.h"
#include "cli/options/name_options.h"
#include "cli/options/output_name.h"
#include "cli/record/record_options.h"
#include "cli/record/scratch_folder.h"
#include "cli/warnings/warnings.h"
#include "host/containers/memory_end.h"
#include "host/os/file.h"
#include "host/os/new_file.h"

struct check_fields {
    struct option_word_vec words; // --function and --max-...
    const char *config;
    const char *baseline;
    const char *per;
    const char *output;
    const char *junit;
    const char *sarif;
    uint64_t growth;
    struct filter_words filter;
    struct name_words names;
    struct record_words recording;
    bool no_config;
    bool use_github;
    bool use_json;
    bool is_failure_allowed;
    bool allows_missing;
    bool no_color;
};

#define GROWTH_UNSET UINT64_MAX

static const struct check_fields defaults = {
    .growth = GROWTH_UNSET, .filter = {.suppresses = true}, .recording = RECORD_WORDS_DEFAULTS};

#define FIELD(field)                        offsetof(struct check_fields, field)
#define BUDGET_OPTION(name, unit, sentence) OPTION(0, name, EACH, unit, FIELD(words), sentence)

// clang-format off
static const struct option_spec specs[] = {
    BUDGET_OPTION("max-peak", "SIZE", "maximum live heap, such as 64MiB"),
    BUDGET_OPTION("max-allocations", "N", "maximum number of allocations"),
    BUDGET_OPTION("max-allocated", "SIZE", "maximum bytes allocated over time"),
    BUDGET_OPTION("max-leaked", "SIZE", "maximum bytes that are never freed"),
    BUDGET_OPTION("max-temporary-share", "PERCENT",
                  "maximum share of temporary allocations, such as 20%"),
    BUDGET_OPTION("max-rss", "SIZE", "maximum resident size of all processes together"),
    BUDGET_OPTION("function", "REGEX",
                  "apply the budgets that follow to stacks with a matching function"),
    OPTION(0, "baseline", NAME, "FILE", FIELD(baseline),
           "recording to compare with: peak, allocations, allocated and leaked bytes may grow by "
           "at most --max-growth"),
    OPTION(0, "max-growth", PERCENT, "PERCENT", FIELD(growth),
           "allowed growth over the baseline (default: 0%)"),
    OPTION(0, "per", TEXT, "second|N|OLD:NEW", FIELD(per), "with --baseline: as for cairn diff"),
    OPTION(0, "config", NAME, "FILE", FIELD(config),
           "also read budgets from FILE (default: cairn.toml, if it exists)"),
    OPTION(0, "no-config", FLAG, NULL, FIELD(no_config),
           "nothing from cairn.toml, config.toml and CAIRN_OPTIONS"),
    OPTION('o', "output", NAME, "FILE", FIELD(output),
           "keep the recording of PROGRAM as FILE; patterns as for 'cairn record -o'"),
    OPTION(0, "allow-failure", FLAG, NULL, FIELD(is_failure_allowed),
           "accept any exit status or signal of PROGRAM"),
    OPTION(0, "allow-missing", FLAG, NULL, FIELD(allows_missing),
           "accept functions that the program does not have and filters that match nothing; by "
           "default both are errors"),
    OPTION(0, "junit", NAME, "FILE", FIELD(junit), "also write the results as JUnit XML"),
    OPTION(0, "sarif", NAME, "FILE", FIELD(sarif),
           "also write the results and the findings as SARIF, for code scanning"),
    OPTION(0, "github", FLAG, NULL, FIELD(use_github), "also write GitHub annotations"),
    OPTION(0, "json", FLAG, NULL, FIELD(use_json), "write JSON (docs/format/json.md)"),
    OPTION(0, "no-color", FLAG, NULL, FIELD(no_color),
           "no colours, even on a terminal (also: NO_COLOR)"),
};
// clang-format on

static MUST_USE enum err
make_plan(const struct check_fields *fields, struct check_plan *plan, struct err_info *info)
{
    if (!fields->no_config || fields->config != NULL) {
        TRY(check_plan_read(plan, fields->config, info));
    }
    TRY(check_plan_add_words(plan, &fields->words, info));
    plan->baseline = fields->baseline != NULL ? fields->baseline : plan->baseline;
    plan->allows_missing = plan->allows_missing || fields->allows_missing;
    plan->per = fields->per != NULL ? fields->per : plan->per;
    if (fields->growth != GROWTH_UNSET) {
        plan->growth = fields->growth;
        plan->has_growth = true;
    }
    bool has_function = false;
    for (size_t i = 0; i < plan->budgets.len; i++) {
        has_function = has_function || plan->budgets.items[i].function != NULL;
    }
    const struct mistake mistakes[] = {
        {plan->baseline == NULL && (plan->has_growth || plan->per != NULL),
         "budgets for growth require --baseline FILE"},
        {plan->budgets.len == 0 && plan->baseline == NULL,
         "no budget given; an example is --max-peak 64MiB"},
        {has_function && fields->filter.names.function != NULL,
         "--filter-function cannot be combined with budgets for functions"},
        {fields->use_json && fields->use_github,
         "--json and --github cannot be combined: both write to standard output"},
    };
    TRY(mistakes_check(mistakes, ARRAY_LEN(mistakes), info));
    return filter_words_check(&fields->filter, info);
}

static MUST_USE enum err
write_junit(const struct check_results *results, const char *path, struct err_info *info)
{
    CLEANUP(replacement_abandon) struct replacement file = {0};
    TRY(replacement_begin(&file, path, FILE_MODE_BY_UMASK, info));
    check_write_junit(results, file.stream);
    TRY(memory_end_result());
    return replacement_commit(&file, false, info);
}

static MUST_USE enum err write_results(const struct check_results *results,
                                       const struct check_fields *fields,
                                       struct err_info *info)
{
    enum err problem = ERR_OK;
    if (fields->use_json) {
        problem = check_write_json(results, command_json_style(), stdout);
    } else {
        check_write_text(results, !fields->no_color && command_use_color(STDOUT_FILENO), stdout);
    }
    if (fields->use_github && problem == ERR_OK) {
        problem = check_write_github(results, stdout);
    }
    TRY(problem == ERR_NO_MEMORY ? problem : ERR_OK); // other ones are found at the end
    return fields->junit != NULL ? write_junit(results, fields->junit, info) : ERR_OK;
}

static MUST_USE enum err evaluate_file(const char *path,
                                       const struct check_plan *plan,
                                       const struct check_fields *fields,
                                       struct check_results *results,
                                       struct err_info *info)
{
    CLEANUP(name_places_release) struct name_places names = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    TRY(name_places_init(&names, &fields->names, info));
    TRY(warnings_open_profile(path, &names.sources, &profile, info));
    TRY(check_evaluate(results, plan, profile, &names.sources, &fields->filter, info));
    TRY(write_results(results, fields, info));
    return fields->sarif != NULL
               ? check_write_sarif(results, profile, &fields->filter, path, fields->sarif, info)
               : ERR_OK;
}

static int check_file(const char *path,
                      const struct check_plan *plan,
                      const struct check_fields *fields,
                      struct check_results *results)
{
    struct err_info info = {0};
    const enum err problem = evaluate_file(path, plan, fields, results, &info);
    return command_end(problem, &info, check_broken_count(results) > 0 ? STATUS_FOUND : STATUS_OK);
}

static int check_program(char **argv,
                         const struct check_plan *plan,
                         const struct check_fields *fields,
                         struct check_results *results)
{
    struct err_info info = {0};
    CLEANUP(scratch_folder_remove) struct scratch_folder scratch = {0};
    CLEANUP(strbuf_release) struct strbuf pattern = {0};
    if (fields->output != NULL) {
        strbuf_append_text(&pattern, fields->output);
    } else if (scratch_folder_make(&scratch, &info) != ERR_OK) {
        return command_error(&info);
    }
    output_name_append_path(&pattern, strbuf_text(&scratch.recording));
    struct record_settings settings;
    CLEANUP(allocator_names_release) struct allocator_name_vec names = {0};
    if (record_words_take(&fields->recording, &names, &settings, &info) != ERR_OK) {
        return command_usage_error(&command_check, &info);
    }
    settings.output = strbuf_text(&pattern);
    settings.is_quiet = true;
    struct record_outcome outcome;
    record_program(&settings, argv, &outcome);
    CLEANUP(text_freep) char *path = outcome.path;
    if (!outcome.has_run || !outcome.is_recorded || path == NULL) {
        return STATUS_USAGE; // already printed
    }
    if (check_add_program(results, outcome.wait_status, fields->is_failure_allowed) != ERR_OK) {
        return command_error(&info);
    }
    return check_file(path, plan, fields, results);
}

static int run(void *context, int count, char **operands)
{
    struct check_fields *fields = context;
    struct err_info info = {0};
    fields->names.ignores_settings = fields->no_config;
    fields->recording.ignores_settings = fields->no_config;
    CLEANUP(check_plan_release) struct check_plan plan = {0};
    CLEANUP(check_results_release) struct check_results results = {0};
    const bool is_program = command_is_program(operands);
    if (count == 0 || (!is_program && count != 1)) {
        return command_refuse(&command_check, "no FILE and no -- PROGRAM given");
    }
    if (make_plan(fields, &plan, &info) != ERR_OK) {
        return command_usage_error(&command_check, &info);
    }
    return is_program ? check_program(operands, &plan, fields, &results)
                      : check_file(operands[0], &plan, fields, &results);
}

const struct command command_check = {
    .name = "check",
    .summary = "check a program against memory budgets, for tests",
    .synopsis = "[options] FILE\n       cairn check [options] -- PROGRAM ARGS...",
    .description =
        "Record PROGRAM, or read the recording FILE, and report which memory budgets were\n"
        "kept and which were exceeded, by which call stacks. PROGRAM needs no changes.\n"
        "Budgets are options, or entries of a file:\n\n"
        "    [check]\n"
        "    max-peak = \"64MiB\"\n"
        "    max-leaked = 0\n\n"
        "    [[function]]\n"
        "    match = \"^parse\"\n"
        "    max-allocations = 1000\n\n"
        "The exit status is 0 if all budgets were kept, 1 if one was exceeded or PROGRAM\n"
        "failed, 2 if the check could not be made.\n",
    .examples = "cairn check --max-peak 64MiB --max-leaked 0 -- ./app --self-test\n"
                "cairn check --function '^parse' --max-allocations 1000 run.cairn\n"
                "cairn check --baseline old.cairn --max-growth 5% new.cairn\n",
    .options = {.specs = specs,
                .count = ARRAY_LEN(specs),
                .shared = {RECORD_OPTIONS(check_fields, recording),
                           FILTER_OPTIONS(check_fields, filter), NAME_OPTIONS(check_fields, names)},
                .follows_operands = true},
    .fields_bytes = sizeof(struct check_fields),
    .defaults = &defaults,
    .run = run,
};
