// SPDX-License-Identifier: MIT
#include "cli/store/table_output.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/text/screen_text.h"
#include "formats/codec/clean_text.h"
#include "host/containers/vec.h"
#include "host/text/format.h"
#include "host/text/json_writer.h"
#include "store/store_table.h"
#include "views_json/layout/csv_cell.h"

static bool is_id(const char *name)
{
    return strcmp(name, "recording_id") == 0;
}

static uint64_t magnitude(int64_t number)
{
    return number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
}

static void append_time(struct strbuf *out, int64_t seconds)
{
    char text[32] = "";
    struct tm utc;
    const time_t moment = (time_t)seconds;
    if (gmtime_r(&moment, &utc) != NULL) {
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc); // fits
    }
    strbuf_append_text(out, text);
}

static void append_integer(struct strbuf *out, const char *name, int64_t number)
{
    if (is_id(name)) {
        strbuf_printf(out, "%016" PRIx64, (uint64_t)number);
        return;
    }
    if (strcmp(name, "time") == 0) {
        append_time(out, number);
        return;
    }
    if (number < 0 || strncmp(name, "change_", strlen("change_")) == 0) {
        strbuf_append_char(out, number < 0 ? '-' : '+');
    }
    const struct human human = screen_ends_with(name, "_bytes") ? format_bytes(magnitude(number))
                               : screen_ends_with(name, "_ms")
                                   ? format_duration(magnitude(number) < UINT64_MAX / NS_PER_MS
                                                         ? magnitude(number) * NS_PER_MS
                                                         : UINT64_MAX)
                                   : format_count(magnitude(number));
    // The numbers of lines are no amounts.
    if (strcmp(name, "line") == 0) {
        strbuf_printf(out, "%" PRId64, number);
    } else {
        strbuf_append_text(out, human.text);
    }
}

static void append_cell(struct strbuf *out, const char *name, const struct store_value *value)
{
    switch (value->kind) {
    case STORE_NULL:
        strbuf_append_char(out, '-');
        break;
    case STORE_INTEGER:
        append_integer(out, name, value->integer);
        break;
    case STORE_UNSIGNED:
        strbuf_append_text(out, screen_ends_with(name, "_bytes")
                                    ? format_bytes((uint64_t)value->integer).text
                                    : format_count((uint64_t)value->integer).text);
        break;
    case STORE_REAL:
        strbuf_printf(out, "%.1f", value->real);
        break;
    case STORE_TEXT:
        screen_append(out, value->text);
        break;
    }
}

// How a column is printed: texts left, numbers right.
struct shape {
    uint32_t width;
    bool is_number; // in all rows
};

DEFINE_VEC(shape_vec, struct shape);

// Print one line. `row` beyond the last: the names of the columns.
static MUST_USE enum err
write_line(const struct store_table *table, size_t row, const struct shape_vec *shapes, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf cell = {0};
    for (size_t column = 0; column < table->names.len; column++) {
        const char *name = store_table_name(table, column);
        strbuf_clear(&cell);
        if (row < store_table_rows(table)) {
            const struct store_value value = store_table_get(table, row, column);
            append_cell(&cell, name, &value);
        } else {
            screen_append(&cell, name);
        }
        const bool is_last = column + 1 == table->names.len;
        const struct shape shape = shapes->items[column];
        const int padding = (int)(shape.width - screen_columns(strbuf_text(&cell)));
        (void)fprintf(out, "%*s%s%*s%s", shape.is_number ? padding : 0, "", strbuf_text(&cell),
                      shape.is_number || is_last ? 0 : padding, "", is_last ? "\n" : "  ");
    }
    return ERR_OK;
}

static MUST_USE enum err write_text(const struct store_table *table, FILE *out)
{
    CLEANUP(shape_vec_release) struct shape_vec shapes = {0};
    CLEANUP(strbuf_release) struct strbuf cell = {0};
    TRY(shape_vec_resize(&shapes, table->names.len));
    for (size_t column = 0; column < table->names.len; column++) {
        const char *name = store_table_name(table, column);
        size_t width = screen_columns(name);
        bool is_number = true;
        for (size_t row = 0; row < store_table_rows(table); row++) {
            const struct store_value value = store_table_get(table, row, column);
            strbuf_clear(&cell);
            append_cell(&cell, name, &value);
            const size_t columns = screen_columns(strbuf_text(&cell));
            width = columns > width ? columns : width;
            is_number &= value.kind != STORE_TEXT;
        }
        shapes.items[column] = (struct shape){(uint32_t)(width < 10000 ? width : 10000), is_number};
    }
    const size_t rows = store_table_rows(table);
    TRY(write_line(table, rows, &shapes, out));
    for (size_t row = 0; row < rows; row++) {
        TRY(write_line(table, row, &shapes, out));
    }
    if (table->more > 0) {
        (void)fprintf(out, "and %s more; --limit 0 lists all\n", format_count(table->more).text);
    }
    return ERR_OK;
}

static MUST_USE enum err write_json(const struct store_table *table, FILE *out)
{
    struct json_writer w;
    json_to_stream(&w, out, isatty(fileno(out)) == 1 ? JSON_INDENTED : JSON_COMPACT);
    store_table_write_json(table, &w);
    return json_finish(&w);
}

static void append_csv(struct strbuf *out, const char *name, const struct store_value *value)
{
    switch (value->kind) {
    case STORE_NULL:
        break;
    case STORE_INTEGER:
        strbuf_printf(out, is_id(name) ? "%016" PRIx64 : "%" PRId64, value->integer);
        break;
    case STORE_UNSIGNED:
        strbuf_printf(out, "%" PRIu64, (uint64_t)value->integer);
        break;
    case STORE_REAL:
        strbuf_printf(out, "%.17g", value->real);
        break;
    case STORE_TEXT:
        clean_append(out, value->text, (struct clean_rule){0});
        break;
    }
}

static MUST_USE enum err write_csv(const struct store_table *table, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf cell = {0};
    const size_t rows = store_table_rows(table);
    for (size_t line = 0; line <= rows; line++) {
        for (size_t column = 0; column < table->names.len; column++) {
            const char *name = store_table_name(table, column);
            const struct store_value value =
                line > 0 ? store_table_get(table, line - 1, column) : store_text(name);
            strbuf_clear(&cell);
            append_csv(&cell, name, &value);
            if (value.kind == STORE_TEXT) {
                csv_write_text(out, strbuf_text(&cell));
            } else {
                (void)fputs(strbuf_text(&cell), out);
            }
            (void)fputs(column + 1 < table->names.len ? "," : CSV_LINE_END, out);
        }
    }
    return ERR_OK;
}

enum err table_write(const struct store_table *table, enum table_form form, FILE *out)
{
    switch (form) {
    case TABLE_TEXT:
        return write_text(table, out);
    case TABLE_JSON:
        return write_json(table, out);
    case TABLE_CSV:
        return write_csv(table, out);
    }
    return ERR_OK;
}
