// SPDX-License-Identifier: MIT
// view_csv: one table of an answer as CSV (RFC 4180), with the names and figures of the JSON.
//
// The writers of views.h run as for JSON in rows; of what they write, only the tables with one of
// the wanted keys reach the output:
//
//   key of a field           its column; true or false, empty for null
//   location                 the columns function, file, line, module
//   function                 the columns function and module, as in JSON
//   costs                    a column for each cost; those of other fields than `costs` have the
//                            field as prefix: self_peak_bytes
//   frames                   the functions, innermost first, with ; between them
//
// Tables of the same columns follow each other under one header. Tags, columns at the front, tell
// them apart. Context: H. Output errors stay in the stream.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "views_json/layout/view_cell.h"

enum {
    CSV_KEYS_MAX = 2,
    CSV_TAGS_MAX = 2,
};

struct view_csv {
    FILE *out;                      // borrowed
    const char *keys[CSV_KEYS_MAX]; // of the wanted tables
    struct {
        const char *name;  // NULL: no column
        const char *value; // NULL: the key of the table
    } tags[CSV_TAGS_MAX];  // borrowed
    bool has_header;       // written
};

// Set the value of a tag for the tables that follow. Does nothing for JSON.
void view_csv_tag(struct view *view, size_t tag, const char *value);

// Whether tables of this answer are nested in entries of others.
bool view_nests(const struct view *view);

// Open `w` as an output for everything beside the tables: it drops all.
void view_csv_drop(struct json_writer *w);

// Write the table if it is wanted. For view_table.c.
void view_csv_table(struct view *view, const struct table *table);
