// SPDX-License-Identifier: MIT
// code_tables: the functions, locations, files and modules that one answer refers to.
//
// While an answer is written in columns, each of these gets a position here; view_end() writes the
// tables. So an answer is complete by itself and holds nothing that it does not refer to. A failed
// allocation is noted for the answer (memory_end.h).
// Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "profile/model/code_union.h"

struct named_location {
    enum side side;
    uint32_t location; // of the side's code index
    uint32_t function; // position
    uint32_t file;     // REC_NONE if unknown
};

DEFINE_VEC(named_location_vec, struct named_location);

struct named_function {
    uint32_t id;     // in the union
    uint32_t module; // position; REC_NONE without a module
};

DEFINE_VEC(named_function_vec, struct named_function);

struct code_tables {
    const struct code_union *code; // borrowed
    struct named_function_vec functions;
    struct named_location_vec locations;
    struct string_table files;   // string ids are positions + 1
    struct string_table modules; // string ids are positions + 1
    struct map_u64 function_at;  // union id -> position
    struct map_u64 location_at;  // side and location -> position
};

void code_tables_release(struct code_tables *tables);

// The position of a function of the union, or of a location of one side; REC_NONE for REC_NONE.
uint32_t code_tables_function(struct code_tables *tables, uint32_t id);
uint32_t code_tables_location(struct code_tables *tables, enum side side, uint32_t location);
