// SPDX-License-Identifier: MIT
// store_json: see store_json.h.
#include "store/store_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

void store_json_write(const struct store_table *table, struct json_writer *w)
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
