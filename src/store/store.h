// SPDX-License-Identifier: MIT
// store: many recordings in one database, to compare versions, hosts and times.
//
//   recording -> profile -> recording_rows -> engine (SQLite file, ClickHouse server)
//                                               ^
//                        store_queries -------+--> store_table -> the faces
//
// A recording is identified by the content of its file, so adding it again changes nothing.
// Context: H; one thread. Failure: a sentence. Trust: recordings, databases and servers are
// hostile: names are values and never SQL, and answers are bounded (store_table.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/model/cost.h"
#include "store/recording_rows.h"
#include "store/store_queries.h"
#include "store/store_table.h"

// The recordings that a query is about. Zeroed texts and numbers mean all.
struct store_scope {
    const char *service;
    const char *version;
    const char *host;
    int64_t since; // seconds of Unix time, included
    int64_t until; // not included; 0: no end
    int64_t recording_id;
    enum cost cost;   // recordings that do not know it are left out
    bool is_any_cost; // unless this is set
    uint32_t limit;   // of rows; 0: all
};

struct store;

// Open a store: an URL of a ClickHouse server, else the path of a SQLite file. NULL: $CAIRN_STORE,
// or store.db in the user's data folder. `creates`: make a store that does not exist.
enum err store_open(const char *place, bool creates, struct store **out, struct err_info *info)
    MUST_USE;
void store_close(struct store *store);   // accepts NULL
void store_closep(struct store **store); // for CLEANUP

// Add a recording. *out_is_new is false if the store has it already.
enum err store_add(struct store *store,
                   const char *path,
                   const struct selection *selection,
                   const struct store_labels *labels,
                   bool *out_is_new,
                   struct err_info *info) MUST_USE;

// Parse a recording_id, 16 hexadecimal digits that are not all 0. Return false for another text.
bool store_parse_id(const char *text, int64_t *out);

// Return the recording_id of a file. Errors: those of reading it.
enum err store_identify(const char *path, int64_t *out, struct err_info *info) MUST_USE;

// Answer a query. `words` are its own, as many as it needs. ERR_NOT_FOUND if a word names a
// version that no recording in the scope has.
enum err store_ask(struct store *store,
                   const struct store_query *query,
                   const struct store_scope *scope,
                   const char *const *words,
                   struct store_table *out,
                   struct err_info *info) MUST_USE;

// Run a statement of the user, which may only read. SQLite ends it after `limit_ms`; 0: never.
enum err store_select(struct store *store,
                      const char *sql,
                      uint64_t limit_ms,
                      struct store_table *out,
                      struct err_info *info) MUST_USE;

// Remove the recordings of the scope, and all that only they use.
enum err store_prune(struct store *store,
                     const struct store_scope *scope,
                     uint64_t *out_count,
                     struct err_info *info) MUST_USE;
