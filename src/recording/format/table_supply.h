// SPDX-License-Identifier: MIT
// table_supply: tables that are made while they are written, so that no whole copy exists.
//
// The recorder's rows hold the content of several file tables in a smaller form. With a supply, the
// writer requests the entries of these tables group by group. A table that a supply makes is empty
// in struct recording. Context: H; the writer requests one table after the other, each from its
// first entry to its last.
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "recording/format/schema.h"

struct table_supply {
    void *context;
    // Return the number of entries of `table`; 0 for a table that the supply does not make.
    size_t (*count)(void *context, enum rec_table_index table);
    // Begin a table.
    void (*begin)(void *context, enum rec_table_index table);
    // Make the next `count` entries. The caller requests no more than exist. ERR_NO_MEMORY.
    enum err (*next)(void *context, enum rec_table_index table, void *entries, size_t count);
};
