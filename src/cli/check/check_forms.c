// SPDX-License-Identifier: MIT
// check_forms: prints results as text, JUnit XML, GitHub annotations, JSON and SARIF. See
// check_results.h.
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/check/check_results.h"
#include "cli/text/screen_text.h"
#include "formats/export/export_sarif.h"
#include "formats/export/exporter.h"
#include "host/containers/memory_end.h"
#include "host/os/new_file.h"
#include "host/text/format.h"
#include "views_json/views/view_parts.h"

enum {
    NAME_COLUMNS_MIN = 28,
    NAME_COLUMNS_MAX = 48,
    LINE_COLUMNS = 80,
};

// Whether the result is neither a success nor a failure.
static bool is_skipped(const struct check_result *result)
{
    return result->is_unknown || result->is_uncertain;
}

static const char *verdict_of(const struct check_result *result)
{
    if (!result->is_broken) {
        return is_skipped(result) ? "?" : "ok";
    }
    return result->kind == CHECK_PROGRAM ? "FAILED" : "BROKEN";
}

// Print details, without the empty lines that they begin with.
static void write_details(const char *details, FILE *out)
{
    while (*details == '\n') {
        details++;
    }
    (void)fputs(details, out); // output errors are found when the stream is closed
    (void)fputc('\n', out);
}

// Return the width of the longest name, within bounds.
static size_t name_columns(const struct check_results *results)
{
    size_t most = NAME_COLUMNS_MIN;
    for (size_t i = 0; i < results->items.len; i++) {
        const size_t columns = screen_columns(strbuf_text(&results->items.items[i].name));
        most = max_u64(most, columns);
    }
    return most < NAME_COLUMNS_MAX ? most : NAME_COLUMNS_MAX;
}

static void
write_result(const struct check_result *result, size_t columns, bool use_color, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    screen_append_cut(&name, strbuf_text(&result->name), columns, SCREEN_CUT_MIDDLE);
    size_t width = screen_columns(strbuf_text(&name));
    (void)fprintf(out, "  %s%-6s%s  %s%*s  %s\n",
                  paint_begin(use_color, result->is_broken ? PAINT_WARNING : PAINT_GOOD),
                  verdict_of(result), paint_end(use_color), strbuf_text(&name),
                  (int)(columns - width), "", strbuf_text(&result->message));
    if (result->details.len > 0) {
        (void)fputc('\n', out);
        write_details(strbuf_text(&result->details), out);
    }
}

void check_write_text(const struct check_results *results, bool use_color, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf title = {0};
    screen_append_cut(&title, strbuf_text(&results->title), LINE_COLUMNS, SCREEN_CUT_MIDDLE);
    (void)fprintf(out, "%s%s%s\n", paint_begin(use_color, PAINT_TITLE), strbuf_text(&title),
                  paint_end(use_color));
    const size_t columns = name_columns(results);
    size_t checks = 0;
    size_t broken = 0;
    size_t uncertain = 0;
    bool has_failed = false;
    for (size_t i = 0; i < results->items.len; i++) {
        const struct check_result *result = &results->items.items[i];
        bool is_program = result->kind == CHECK_PROGRAM;
        checks += !is_program && !result->is_unknown;
        broken += !is_program && result->is_broken;
        uncertain += result->is_uncertain;
        has_failed = has_failed || (is_program && result->is_broken);
        write_result(result, columns, use_color, out);
    }
    const char *paint =
        paint_begin(use_color, broken > 0 || has_failed ? PAINT_WARNING : PAINT_GOOD);
    (void)fprintf(out, "%s%s of %s broken", paint, format_count(broken).text,
                  format_things(checks, "budget", "budgets").text);
    if (uncertain > 0) {
        (void)fprintf(out, ", %s undecided", format_count(uncertain).text);
    }
    (void)fprintf(out, "%s%s\n", has_failed ? "; the program failed" : "", paint_end(use_color));
}

// Return the XML entity of a reserved character.
static const char *xml_name(char character)
{
    static const struct {
        char character;
        const char *name;
    } names[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\n', "&#10;"}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (names[i].character == character) {
            return names[i].name;
        }
    }
    return NULL;
}

// Append text for XML. Safe text (screen_text.h) is UTF-8 without control characters, except our
// line feeds. XML also forbids U+FFFE and U+FFFF, which safe text may hold.
static void append_xml(struct strbuf *out, const char *safe)
{
    static const char noncharacters[] = "\xef\xbf";
    for (const char *at = safe; *at != '\0'; at++) {
        const char *name = xml_name(*at);
        bool is_nothing = strncmp(at, noncharacters, 2) == 0 && (uint8_t)at[2] >= 0xbe;
        if (is_nothing) {
            strbuf_append_text(out, "\xef\xbf\xbd");
            at += 2;
        } else if (name != NULL) {
            strbuf_append_text(out, name);
        } else {
            strbuf_append_char(out, *at);
        }
    }
}

static void append_test_case(struct strbuf *out, const struct check_result *result)
{
    bool is_program = result->kind == CHECK_PROGRAM;
    const char *element = is_program ? "error" : "failure";
    strbuf_append_text(out, "    <testcase classname=\"cairn\" name=\"");
    append_xml(out, strbuf_text(&result->name));
    if (is_skipped(result)) {
        strbuf_append_text(out, "\">\n      <skipped message=\"");
        append_xml(out, strbuf_text(&result->message));
        strbuf_append_text(out, "\"/>\n    </testcase>\n");
        return;
    }
    if (!result->is_broken) {
        strbuf_append_text(out, "\"/>\n");
        return;
    }
    strbuf_printf(out, "\">\n      <%s type=\"%s\" message=\"", element,
                  is_program ? "program" : result->measure);
    append_xml(out, strbuf_text(&result->message));
    strbuf_append_text(out, "\">");
    append_xml(out, strbuf_text(&result->details));
    strbuf_printf(out, "</%s>\n    </testcase>\n", element);
}

void check_write_junit(const struct check_results *results, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    size_t errors = 0;
    size_t skipped = 0;
    for (size_t i = 0; i < results->items.len; i++) {
        const struct check_result *result = &results->items.items[i];
        skipped += is_skipped(result);
        errors += result->is_broken && result->kind == CHECK_PROGRAM;
    }
    strbuf_append_text(&text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
                              "  <testsuite name=\"");
    append_xml(&text, strbuf_text(&results->title));
    strbuf_printf(
        &text, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
        results->items.len, check_broken_count(results) - errors, errors, skipped,
        (double)results->runtime_ms / 1000);
    for (size_t i = 0; i < results->items.len; i++) {
        append_test_case(&text, &results->items.items[i]);
    }
    strbuf_append_text(&text, "  </testsuite>\n</testsuites>\n");
    (void)fputs(strbuf_text(&text), out);
}

// Append the data of a workflow command. A property also escapes the characters that would end it.
static void append_github(struct strbuf *out, const char *safe, bool is_property)
{
    for (const char *at = safe; *at != '\0'; at++) {
        bool is_special =
            strchr("%\r\n", *at) != NULL || (is_property && strchr(":,", *at) != NULL);
        if (is_special) {
            strbuf_printf(out, "%%%02X", (unsigned)(uint8_t)*at);
        } else {
            strbuf_append_char(out, *at);
        }
    }
}

enum err check_write_github(const struct check_results *results, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    for (size_t i = 0; i < results->items.len; i++) {
        const struct check_result *result = &results->items.items[i];
        if (!result->is_broken && !result->is_uncertain) {
            continue;
        }
        strbuf_append_text(&text, result->is_broken ? "::error " : "::warning ");
        if (result->file.len > 0) {
            strbuf_append_text(&text, "file=");
            append_github(&text, workspace_path(strbuf_text(&result->file)), true);
            strbuf_printf(&text, ",line=%u,", result->line > 0 ? result->line : 1);
        }
        strbuf_append_text(&text, "title=cairn ");
        append_github(&text, strbuf_text(&result->name), true);
        strbuf_append_text(&text, "::");
        append_github(&text, strbuf_text(&result->message), false);
        append_github(&text, result->details.len > 0 ? "\n" : "", false);
        append_github(&text, strbuf_text(&result->details), false);
        strbuf_append_char(&text, '\n');
    }
    (void)fputs(strbuf_text(&text), out);
    return ERR_OK;
}

// A result in JSON. All texts are borrowed.
struct check_row {
    const char *kind; // "program", "budget", "growth"
    const char *name;
    const char *measure;  // NULL for the program
    const char *function; // of the budget; NULL: none
    bool broken;
    bool known;
    bool certain;
    const char *message;
    double value; // NAN: none, as in the next three
    double limit;
    double at_least;
    double at_most;
    const char *file; // NULL: unknown
    uint32_t line;
    const char *details;
};

DEFINE_VEC(check_row_vec, struct check_row);

static const struct column result_columns[] = {
    COLUMN(CELL_TEXT, check_row, kind),       COLUMN(CELL_TEXT, check_row, name),
    COLUMN(CELL_TEXT, check_row, measure),    COLUMN(CELL_TEXT, check_row, function),
    COLUMN(CELL_BOOL, check_row, broken),     COLUMN(CELL_BOOL, check_row, known),
    COLUMN(CELL_BOOL, check_row, certain),    COLUMN(CELL_TEXT, check_row, message),
    COLUMN(CELL_DOUBLE, check_row, value),    COLUMN(CELL_DOUBLE, check_row, limit),
    COLUMN(CELL_DOUBLE, check_row, at_least), COLUMN(CELL_DOUBLE, check_row, at_most),
    COLUMN(CELL_TEXT, check_row, file),       COLUMN(CELL_U32, check_row, line),
    COLUMN(CELL_TEXT, check_row, details),
};

static struct check_row row_of(const struct check_result *result)
{
    static const char *const kinds[] = {
        [CHECK_PROGRAM] = "program", [CHECK_BUDGET] = "budget", [CHECK_GROWTH] = "growth"};
    const bool has_value = result->kind != CHECK_PROGRAM;
    return (struct check_row){
        .kind = kinds[result->kind],
        .name = strbuf_text(&result->name),
        .measure = result->measure,
        .function = result->function,
        .broken = result->is_broken,
        .known = !result->is_unknown,
        .certain = !result->is_uncertain,
        .message = strbuf_text(&result->message),
        .value = has_value ? result->value : NAN,
        .limit = has_value ? result->limit : NAN,
        .at_least = result->kind == CHECK_BUDGET ? result->at_least : NAN,
        .at_most = result->kind == CHECK_BUDGET ? result->at_most : NAN,
        .file = result->file.len > 0 ? strbuf_text(&result->file) : NULL,
        .line = result->line,
        .details = strbuf_text(&result->details),
    };
}

enum err check_write_json(const struct check_results *results, enum json_style style, FILE *out)
{
    CLEANUP(check_row_vec_release) struct check_row_vec rows = {0};
    struct json_writer w;
    struct view view = {.w = &w, .layout = VIEW_ROWS};
    for (size_t i = 0; i < results->items.len; i++) {
        TRY(check_row_vec_push(&rows, row_of(&results->items.items[i])));
    }
    json_to_stream(&w, out, style);
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    json_key_string(&w, "title", strbuf_text(&results->title));
    json_key_bool(&w, "passed", check_broken_count(results) == 0);
    json_key_u64(&w, "runtime_ms", results->runtime_ms);
    json_key(&w, "wait_status");
    view_wait_status(&view, results->has_run ? results->wait_status : -1);
    view_table(&view, &TABLE("results", result_columns, rows.items, rows.len));
    return json_finish(&w);
}

// SARIF has the broken budgets of the check beside the findings of the recording.

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
write_sarif_rows(const struct check_results *results, const struct export_view *view, FILE *out)
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
    TRY(write_sarif_rows(results, &view, file.stream));
    TRY(memory_end_result());
    return replacement_commit(&file, false, info);
}
