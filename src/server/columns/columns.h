// SPDX-License-Identifier: MIT
// columns: tables in JSON, column by column, as docs/format/http-api.md describes them.
//
//   table_begin(w, "sites", 2);           "sites": {"count": 2,
//   column_begin(w, "line");                "line": [
//   json_u64(w, 7); json_u64(w, 9);           7, 9
//   column_end(w);                          ]
//   table_end(w);                         }
//
// Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/text/json_writer.h"
#include "profile/model/cost.h"

void table_begin(struct json_writer *w, const char *key, size_t count);
void table_end(struct json_writer *w);
void column_begin(struct json_writer *w, const char *key);
void column_end(struct json_writer *w);

// A position in another table; REC_NONE becomes null.
void json_position(struct json_writer *w, uint32_t position);

// A column of numbers, and one of positions.
void column_of_numbers(struct json_writer *w, const char *key, const uint64_t *items, size_t count);
void column_of_positions(struct json_writer *w,
                         const char *key,
                         const uint32_t *items,
                         size_t count);

// A costs table: an array for each cost of `bits` (bit n = enum cost n).
void costs_table(
    struct json_writer *w, const char *key, uint64_t bits, const struct costs *items, size_t count);

// All costs of `bits` as an object by key.
void costs_object(struct json_writer *w, const char *key, uint64_t bits, const struct costs *costs);

#define ALL_COSTS (((uint64_t)1 << COST_COUNT) - 1)
