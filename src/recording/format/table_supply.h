// SPDX-License-Identifier: MIT
// table_supply: tables that are made while they are written, so that they are nowhere as a whole.
//
// The recorder's rows say in their own, smaller form what several tables of the file say; with a
// supply, the writer asks for these tables group by group. A table that a supply makes is empty in
// struct recording. Context: H; the writer asks for one table after the other, each from its
// beginning to its end.
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "recording/format/schema.h"

struct table_supply {
    void *context;
    // How many entries of `table` it makes; 0 for those that it knows nothing of.
    size_t (*count)(void *context, enum rec_table_index table);
    // Begins a table that it makes.
    void (*begin)(void *context, enum rec_table_index table);
    // Makes the next `count` entries, which there are. ERR_NO_MEMORY.
    enum err (*next)(void *context, enum rec_table_index table, void *entries, size_t count);
};
