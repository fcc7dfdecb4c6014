// SPDX-License-Identifier: MIT
#include "cli/check/check_plan.h"

#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/options/option_values.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "profile/select/name_regex.h"

static const char default_file[] = "cairn.toml";

static MUST_USE enum err
parse_limit(enum budget_measure measure, const char *text, uint64_t *out, const char **expected)
{
    static const struct {
        value_parse *parse;
        const char *expected;
    } kinds[] = {
        [BUDGET_BYTES] = {size_parse, "a size such as 4096 or 64MiB"},
        [BUDGET_CALLS] = {count_parse, "a whole number"},
        [BUDGET_HUNDREDTHS] = {percent_parse, "a percentage such as 5%"},
    };
    enum budget_unit unit = budget_get_info(measure)->unit;
    *expected = kinds[unit].expected;
    return kinds[unit].parse(text, out) ? ERR_OK : ERR_INVALID;
}

static MUST_USE enum err
check_function(const char *function, const char *name, struct err_info *info)
{
    CLEANUP(name_regex_release) struct name_regex regex = {0};
    return name_regex_compile(&regex, function, name, info);
}

static bool is_same_scope(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

// Add a budget, or replace the earlier one for the same measure and function.
static MUST_USE enum err add_budget(struct check_plan *plan, struct check_budget budget)
{
    for (size_t i = 0; i < plan->budgets.len; i++) {
        struct check_budget *known = &plan->budgets.items[i];
        if (known->measure == budget.measure && is_same_scope(known->function, budget.function)) {
            known->limit = budget.limit;
            return ERR_OK;
        }
    }
    return check_budget_vec_push(&plan->budgets, budget);
}

// An entry of the file, and its place for error messages.
struct setting {
    struct check_plan *plan;
    const char *path;
    const struct toml_entry *entry;
    const char *function; // of the [[function]] that has the entry
    struct err_info *info;
};

static enum err refuse_setting(const struct setting *setting, const char *what)
{
    return err_set(setting->info, ERR_INVALID, "%.200s:%u: %.60s: %s", setting->path,
                   setting->entry->line, toml_text(&setting->plan->file, setting->entry->key),
                   what);
}

// Append the value as the command line would have it.
static MUST_USE enum err value_text(const struct setting *setting, struct strbuf *out)
{
    const struct toml_entry *entry = setting->entry;
    switch (entry->type) {
    case TOML_TEXT:
        strbuf_append_text(out, toml_text(&setting->plan->file, entry->text));
        return strbuf_result(out);
    case TOML_INTEGER:
        strbuf_printf(out, "%lld", (long long)entry->integer);
        return strbuf_result(out);
    case TOML_BOOLEAN:
        break;
    }
    return refuse_setting(setting, "this is neither true nor false");
}

static MUST_USE enum err set_budget(const struct setting *setting, enum budget_measure measure)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct check_budget budget = {.function = setting->function, .measure = measure};
    const char *expected;
    char sentence[96];
    TRY(value_text(setting, &text));
    if (setting->function != NULL && !budget_get_info(measure)->has_stacks) {
        return refuse_setting(setting, "this budget applies to whole processes only");
    }
    if (parse_limit(measure, strbuf_text(&text), &budget.limit, &expected) != ERR_OK) {
        (void)snprintf(sentence, sizeof(sentence), "this is not %s", expected); // fits
        return refuse_setting(setting, sentence);
    }
    return add_budget(setting->plan, budget);
}

static MUST_USE enum err set_text(const struct setting *setting, const char **out)
{
    if (setting->entry->type != TOML_TEXT) {
        return refuse_setting(setting, "this is a text, in quotes");
    }
    *out = toml_text(&setting->plan->file, setting->entry->text);
    return ERR_OK;
}

static MUST_USE enum err set_in_check(const struct setting *setting)
{
    struct check_plan *plan = setting->plan;
    const char *key = toml_text(&plan->file, setting->entry->key);
    enum budget_measure measure = budget_find(key);
    if (measure != BUDGET_MEASURE_COUNT) {
        return set_budget(setting, measure);
    }
    if (strcmp(key, "baseline") == 0) {
        return set_text(setting, &plan->baseline);
    }
    if (strcmp(key, "per") == 0) {
        return set_text(setting, &plan->per);
    }
    if (strcmp(key, "max-growth") == 0) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        TRY(value_text(setting, &text));
        plan->has_growth = percent_parse(strbuf_text(&text), &plan->growth);
        return plan->has_growth ? ERR_OK
                                : refuse_setting(setting, "this is not a percentage such as 5%");
    }
    if (strcmp(key, "allow-missing") == 0) {
        plan->allows_missing = setting->entry->boolean;
        return setting->entry->type == TOML_BOOLEAN
                   ? ERR_OK
                   : refuse_setting(setting, "this is neither true nor false");
    }
    return refuse_setting(setting, "unknown setting");
}

// Find the match of a [[function]], which may follow its budgets.
static MUST_USE enum err find_match(struct setting setting, uint32_t table, const char **out)
{
    const struct toml *file = &setting.plan->file;
    for (size_t i = 0; i < file->entries.len; i++) {
        setting.entry = &file->entries.items[i];
        if (setting.entry->table == table &&
            strcmp(toml_text(file, setting.entry->key), "match") == 0) {
            TRY(set_text(&setting, out));
            char name[96];
            (void)snprintf(name, sizeof(name), "%.60s:%u: match", setting.path,
                           setting.entry->line); // cut
            return check_function(*out, name, setting.info);
        }
    }
    return err_set(setting.info, ERR_INVALID, "%.200s:%u: a [[function]] needs a match",
                   setting.path, file->tables.items[table].line);
}

static MUST_USE enum err set_in_function(struct setting setting)
{
    const char *key = toml_text(&setting.plan->file, setting.entry->key);
    enum budget_measure measure = budget_find(key);
    TRY(find_match(setting, setting.entry->table, &setting.function));
    if (measure != BUDGET_MEASURE_COUNT) {
        return set_budget(&setting, measure);
    }
    return strcmp(key, "match") == 0 ? ERR_OK : refuse_setting(&setting, "unknown setting");
}

// Whether the table is for others: name_options.c, record_options.c, and rust/cargo-cairn, which
// gives each [[test]] to a check of its own.
static bool is_of_others(const char *table, bool is_element)
{
    return is_element ? strcmp(table, "test") == 0
                      : strcmp(table, "report") == 0 || strcmp(table, "record") == 0;
}

static MUST_USE enum err
apply_file(struct check_plan *plan, const char *path, struct err_info *info)
{
    for (size_t i = 0; i < plan->file.tables.len; i++) {
        const struct toml_table *table = &plan->file.tables.items[i];
        const char *name = toml_text(&plan->file, table->name);
        bool is_known = strcmp(name, table->is_element ? "function" : "check") == 0 ||
                        is_of_others(name, table->is_element);
        if (!is_known && i > 0) {
            return err_set(info, ERR_INVALID, "%.200s:%u: unknown table %s%.60s%s", path,
                           table->line, table->is_element ? "[[" : "[", name,
                           table->is_element ? "]]" : "]");
        }
    }
    for (size_t i = 0; i < plan->file.entries.len; i++) {
        const struct toml_entry *entry = &plan->file.entries.items[i];
        const struct toml_table *table = &plan->file.tables.items[entry->table];
        struct setting setting = {.plan = plan, .path = path, .entry = entry, .info = info};
        if (entry->table == 0) {
            return refuse_setting(&setting, "settings belong in [check] or [[function]]");
        }
        if (!is_of_others(toml_text(&plan->file, table->name), table->is_element)) {
            TRY(table->is_element ? set_in_function(setting) : set_in_check(&setting));
        }
    }
    return ERR_OK;
}

enum err check_plan_read(struct check_plan *plan, const char *path, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    if (path == NULL && access(default_file, F_OK) != 0) {
        return ERR_OK;
    }
    if (path == NULL) {
        path = default_file;
        TRY(file_read_trusted(path, TOML_MAX_BYTES, &text, info));
    } else {
        TRY(file_read(path, TOML_MAX_BYTES, &text, info));
    }
    TRY(toml_parse(strbuf_bytes(&text), path, &plan->file, info));
    return apply_file(plan, path, info);
}

enum err check_plan_add_words(struct check_plan *plan,
                              const struct option_word_vec *words,
                              struct err_info *info)
{
    const char *function = NULL;
    for (size_t i = 0; i < words->len; i++) {
        const struct option_word *word = &words->items[i];
        enum budget_measure measure = budget_find(word->spec->name);
        if (measure == BUDGET_MEASURE_COUNT) { // --function
            function = word->text;
            TRY(check_function(function, "--function", info));
            continue;
        }
        struct check_budget budget = {.function = function, .measure = measure};
        const char *expected;
        if (parse_limit(measure, word->text, &budget.limit, &expected) != ERR_OK) {
            return err_set(info, ERR_INVALID, "--%s: '%.100s' is not %s", word->spec->name,
                           word->text, expected);
        }
        if (function != NULL && !budget_get_info(measure)->has_stacks) {
            return err_set(info, ERR_INVALID,
                           "--%s applies to whole processes only; write it before --function",
                           word->spec->name);
        }
        TRY(add_budget(plan, budget));
    }
    return ERR_OK;
}

void check_plan_release(struct check_plan *plan)
{
    toml_release(&plan->file);
    check_budget_vec_release(&plan->budgets);
}
