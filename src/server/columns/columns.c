// SPDX-License-Identifier: MIT
// columns: see columns.h.
#include "server/columns/columns.h"

void table_begin(struct json_writer *w, const char *key, size_t count)
{
    json_key(w, key);
    json_begin_object(w);
    json_key_u64(w, "count", count);
}

void table_end(struct json_writer *w)
{
    json_end_object(w);
}

void column_begin(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_begin_array(w);
}

void column_end(struct json_writer *w)
{
    json_end_array(w);
}

void json_position(struct json_writer *w, uint32_t position)
{
    if (position == REC_NONE) {
        json_null(w);
    } else {
        json_u64(w, position);
    }
}

void column_of_numbers(struct json_writer *w, const char *key, const uint64_t *items, size_t count)
{
    column_begin(w, key);
    for (size_t i = 0; i < count; i++) {
        json_u64(w, items[i]);
    }
    column_end(w);
}

void column_of_positions(struct json_writer *w,
                         const char *key,
                         const uint32_t *items,
                         size_t count)
{
    column_begin(w, key);
    for (size_t i = 0; i < count; i++) {
        json_position(w, items[i]);
    }
    column_end(w);
}

void costs_table(
    struct json_writer *w, const char *key, uint64_t bits, const struct costs *items, size_t count)
{
    json_key(w, key);
    json_begin_object(w);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if ((bits >> cost & 1) == 0) {
            continue;
        }
        column_begin(w, cost_get_info((enum cost)cost)->key);
        for (size_t i = 0; i < count; i++) {
            json_u64(w, items[i].values[cost]);
        }
        column_end(w);
    }
    json_end_object(w);
}

void costs_object(struct json_writer *w, const char *key, uint64_t bits, const struct costs *costs)
{
    json_key(w, key);
    json_begin_object(w);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if ((bits >> cost & 1) != 0) {
            json_key_u64(w, cost_get_info((enum cost)cost)->key, costs->values[cost]);
        }
    }
    json_end_object(w);
}
