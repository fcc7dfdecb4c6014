// SPDX-License-Identifier: MIT
// check_sarif: the broken budgets of a check, and the findings, as SARIF. See check_results.h.
#include <string.h>

#include "base/compiler.h"
#include "cli/check/check_results.h"
#include "formats/export/export_formats.h"
#include "formats/export/export_sarif.h"
#include "host/os/file.h"

DEFINE_VEC(sarif_result_vec, struct sarif_result);

static const char *rule_of(const struct check_result *result)
{
    switch (result->kind) {
    case CHECK_PROGRAM:
        return "program";
    case CHECK_GROWTH:
        return "max-growth";
    case CHECK_BUDGET:
        break;
    }
    return result->measure;
}

static MUST_USE enum err
write_rows(const struct check_results *results, const struct export_view *view, FILE *out)
{
    CLEANUP(sarif_result_vec_release) struct sarif_result_vec rows = {0};
    CLEANUP(strbuf_release) struct strbuf texts = {0};
    CLEANUP(u32_vec_release) struct u32_vec offsets = {0};
    for (size_t i = 0; i < results->items.len; i++) {
        const struct check_result *result = &results->items.items[i];
        TRY(u32_vec_push(&offsets, (uint32_t)texts.len));
        strbuf_printf(&texts, "%s: %s", strbuf_text(&result->name), strbuf_text(&result->message));
        strbuf_append_char(&texts, '\0');
    }
    TRY(strbuf_result(&texts));
    for (size_t i = 0; i < results->items.len; i++) {
        const struct check_result *result = &results->items.items[i];
        const struct sarif_result row = {
            .rule = rule_of(result),
            .level = result->is_broken ? "error" : "warning",
            .message = strbuf_text(&texts) + offsets.items[i],
            .file = strbuf_text(&result->file),
            .line = result->line,
        };
        if (result->is_broken || result->is_uncertain) {
            TRY(sarif_result_vec_push(&rows, row));
        }
    }
    return export_sarif_write(view, rows.items, rows.len, out);
}

enum err check_write_sarif(const struct check_results *results,
                           const struct profile *profile,
                           const struct filter_words *words,
                           const char *input,
                           const char *path,
                           struct err_info *info)
{
    const struct export_request request = {.exporter = &exporter_sarif, .cost = COST_COUNT};
    CLEANUP(applied_filter_release) struct applied_filter applied = {0};
    TRY(filter_words_apply(words, &profile->recording, &applied, info));
    CLEANUP(export_view_release) struct export_view view = {0};
    TRY(export_view_build(profile, &applied.filter, &request, &view, info));
    view.path = input;
    CLEANUP(replacement_abandon) struct replacement file = {0};
    TRY(replacement_begin(&file, path, FILE_MODE_BY_UMASK, info));
    TRY(write_rows(results, &view, file.stream));
    return replacement_commit(&file, false, info);
}
