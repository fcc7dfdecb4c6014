// SPDX-License-Identifier: MIT
// engine: the two kinds of a store: a database of SQLite or of ClickHouse.
//
// Both hold the same tables (store_schema.h) and answer the same queries (store_queries.h).
// What differs is in the dialect, a table of words, and in the functions below. Values never become
// SQL: SQLite binds them, and ClickHouse gets them as escaped literals.
//
// begin, put and commit add rows. SQLite adds them in one transaction. ClickHouse gets one INSERT
// for each table, in the order of enum store_part: the row in `recordings` is the last to arrive,
// and without it a recording does not count. After a failed put or commit, `abandon` forgets what
// was put.
// Failure: a sentence. Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store_table.h"

// The tables, in the order in which they are written.
enum store_part {
    PART_FUNCTIONS,
    PART_STACKS,
    PART_ROWS,
    PART_RECORDINGS,
    PART_COUNT,
};

// The words in which the dialects differ. Queries have them in braces.
struct dialect {
    const char *left_join; // {JOIN}: takes at most one row of the right side
    const char *in;        // {IN}: in a table of all machines
    const char *integer;   // {INT}: the type of whole numbers
    const char
        *position; // the function that finds a text in another: 1 for its start, 0: not there
    bool names_subqueries; // with WITH, so that one that is read twice is computed once
    const char *insert[PART_COUNT];
    const char *const *schema;       // statements, ended by NULL
    const char *const *upgrade;      // of SQLite: the same, from version 1, which 1.0.0 has
    const char *const *add_interval; // of ClickHouse: what tables of version 1 may lack
    const char *const *add_unknown;
    const char *const *add_live;
    const char *const *add_runs;
    const char *const *rename_unknown; // after add_live, on a server's own tables
};

struct store;

struct engine_kind {
    const struct dialect *dialect;
    void (*close)(struct store *engine);
    // Run one statement and add its answer to `out`. `values` replace ?1, ?2, ... `is_foreign`: the
    // statement is a user's, and may only read.
    enum err (*query)(struct store *engine,
                      const char *sql,
                      const struct store_value *values,
                      size_t count,
                      bool is_foreign,
                      struct store_table *out,
                      struct err_info *info);
    // Run one statement of ours that has no answer.
    enum err (*run)(struct store *engine, const char *sql, struct err_info *info);
    enum err (*begin)(struct store *engine, struct err_info *info);
    enum err (*put)(struct store *engine,
                    enum store_part part,
                    const struct store_value *values,
                    size_t count,
                    struct err_info *info);
    enum err (*commit)(struct store *engine, struct err_info *info);
    void (*abandon)(struct store *engine);
    // Remove the recordings whose ids are in `ids`, their rows, and what no other recording uses.
    // Afterwards the engine may keep others out until it is closed.
    enum err (*remove)(struct store *engine,
                       const int64_t *ids,
                       size_t count,
                       struct err_info *info);
};

// The start of the struct of each engine.
struct store {
    const struct engine_kind *kind;
    uint64_t limit_ms; // of a user's statement, by SQLite; 0: none
};

// Run a query of the store with a value for ?1, and return the number in its first cell; 0 without
// rows.
enum err engine_number(struct store *engine,
                       const char *sql,
                       struct store_value value,
                       int64_t *out,
                       struct err_info *info) MUST_USE;

// Run statements, ended by NULL.
enum err engine_run_all(struct store *engine, const char *const *statements, struct err_info *info)
    MUST_USE;

// Commit what was put if there was no problem, else abandon it. Return the first problem.
enum err engine_end_transaction(struct store *engine, enum err problem, struct err_info *info)
    MUST_USE;

// End the opening of an engine: give it to *out, or close it if there was a problem, and return
// that. For the engines.
enum err engine_finish_open(struct store *engine, enum err problem, struct store **out) MUST_USE;

// Open the database in a file, and create it if it does not exist and `creates`. ERR_UNSUPPORTED
// for a file that is no store, or one of a newer version. Other errors: those of the file.
enum err
sqlite_engine_open(const char *path, bool creates, struct store **out, struct err_info *info)
    MUST_USE;

// Open the database at an URL: http://HOST:PORT/DATABASE. ERR_IO if the server does
// not answer; ERR_INVALID for another URL; ERR_UNSUPPORTED for a database that is no store.
enum err
clickhouse_engine_open(const char *url, bool creates, struct store **out, struct err_info *info)
    MUST_USE;

// The number of the schema.
enum {
    STORE_VERSION = 5
};
