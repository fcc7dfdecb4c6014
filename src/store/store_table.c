// SPDX-License-Identifier: MIT
// store_table: see store_table.h.
#include "store/store_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

static MUST_USE enum err
add_text(struct store_table *table, const char *text, size_t len, size_t *out_at)
{
    if (table->texts.len + len >= STORE_TEXTS_MAX) {
        return ERR_LIMIT;
    }
    *out_at = table->texts.len;
    strbuf_append(&table->texts, text, len);
    strbuf_append_char(&table->texts, '\0');
    return strbuf_result(&table->texts);
}

enum err store_table_add_column(struct store_table *table, const char *name)
{
    size_t at;
    if (table->names.len >= STORE_COLUMNS_MAX) {
        return ERR_LIMIT;
    }
    TRY(add_text(table, name, strlen(name), &at));
    return u64_vec_push(&table->names, at);
}

enum err store_table_add(struct store_table *table, const struct store_value *value, size_t len)
{
    struct store_cell cell = {.kind = value->kind};
    if (table->names.len == 0 || table->cells.len >= table->names.len * STORE_ROWS_MAX) {
        return ERR_LIMIT;
    }
    if (value->kind == STORE_TEXT) {
        TRY(add_text(table, value->text, len, &cell.text_at));
    } else if (value->kind == STORE_REAL) {
        cell.real = value->real;
    } else {
        cell.integer = value->integer; // 0 for STORE_NULL
    }
    return store_cell_vec_push(&table->cells, cell);
}

void store_table_release(struct store_table *table)
{
    u64_vec_release(&table->names);
    store_cell_vec_release(&table->cells);
    strbuf_release(&table->texts);
}

// Whether the column is about errors or states, and says nothing.
static bool says_nothing(const struct store_table *table, size_t column)
{
    const char *name = store_table_name(table, column);
    bool is_dropped = strncmp(name, "error_", strlen("error_")) == 0 ||
                      strcmp(name, "estimates") == 0 || strcmp(name, "earlier_states") == 0;
    for (size_t row = 0; row < store_table_rows(table) && is_dropped; row++) {
        const struct store_value value = store_table_get(table, row, column);
        is_dropped = value.kind == STORE_INTEGER && value.integer == 0;
    }
    return is_dropped;
}

// Whether an earlier column has the same name, and so the same values.
static bool has_twin(const struct store_table *table, size_t column)
{
    size_t at = 0;
    while (strcmp(store_table_name(table, at), store_table_name(table, column)) != 0) {
        at++;
    }
    return at < column;
}

void store_table_drop_needless(struct store_table *table)
{
    for (size_t column = table->names.len; column-- > 0;) {
        if (!says_nothing(table, column) && !has_twin(table, column)) {
            continue;
        }
        const size_t columns = table->names.len;
        size_t kept = 0;
        for (size_t i = 0; i < table->cells.len; i++) {
            if (i % columns != column) {
                table->cells.items[kept++] = table->cells.items[i];
            }
        }
        table->cells.len = kept;
        for (size_t i = column; i + 1 < columns; i++) {
            table->names.items[i] = table->names.items[i + 1];
        }
        table->names.len--;
    }
}

const char *store_table_name(const struct store_table *table, size_t column)
{
    return strbuf_text(&table->texts) + table->names.items[column];
}

struct store_value store_table_get(const struct store_table *table, size_t row, size_t column)
{
    const struct store_cell *cell = &table->cells.items[row * table->names.len + column];
    return (struct store_value){
        .kind = cell->kind,
        .integer = cell->kind == STORE_INTEGER || cell->kind == STORE_UNSIGNED ? cell->integer : 0,
        .real = cell->kind == STORE_REAL ? cell->real : 0,
        .text = cell->kind == STORE_TEXT ? strbuf_text(&table->texts) + cell->text_at : "",
    };
}

int64_t store_table_integer(const struct store_table *table, size_t row, size_t column)
{
    return store_table_get(table, row, column).integer;
}

static void write_value(struct json_writer *w, const char *name, const struct store_value *value)
{
    char id[20];
    switch (value->kind) {
    case STORE_NULL:
        json_value_null(w);
        break;
    case STORE_INTEGER:
        if (strcmp(name, "recording_id") == 0) {
            (void)snprintf(id, sizeof(id), "%016" PRIx64, (uint64_t)value->integer); // fits
            json_value_string(w, id);
        } else {
            json_value_i64(w, value->integer);
        }
        break;
    case STORE_UNSIGNED:
        json_value_u64(w, (uint64_t)value->integer);
        break;
    case STORE_REAL:
        json_value_double(w, value->real);
        break;
    case STORE_TEXT:
        json_value_string(w, value->text);
        break;
    }
}

void store_table_write_json(const struct store_table *table, struct json_writer *w)
{
    json_key_array(w, "columns");
    for (size_t column = 0; column < table->names.len; column++) {
        json_value_string(w, store_table_name(table, column));
    }
    json_end_array(w);
    json_key_array(w, "rows");
    for (size_t row = 0; row < store_table_rows(table); row++) {
        json_begin_object(w);
        for (size_t column = 0; column < table->names.len; column++) {
            const char *name = store_table_name(table, column);
            const struct store_value value = store_table_get(table, row, column);
            json_key(w, name);
            write_value(w, name, &value);
        }
        json_end_object(w);
    }
    json_end_array(w);
    json_key_u64(w, "more", table->more);
}
