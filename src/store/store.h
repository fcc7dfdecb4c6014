// SPDX-License-Identifier: MIT
// store: many recordings in one database, to compare versions, hosts and times.
//
//   recording -> profile -> recording_rows -> engine (SQLite file, ClickHouse server)
//                                               ^
//                        store_queries -------+--> store_table -> the faces
//
// A recording is identified by the content of its file, so adding it again changes nothing. The
// states of one run that --rotate kept count once: queries take the last of those in their
// scope.
// Context: H; one thread, but rows are made in any. Failure: a sentence. Trust: recordings,
// databases and servers are hostile: names are values and never SQL, and answers are bounded
// (store_table.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/model/cost.h"
#include "store/recording_rows.h"
#include "store/retention.h"
#include "store/store_queries.h"
#include "store/store_table.h"

// A label that recordings must have. Texts are borrowed.
struct store_label {
    const char *name; // store_label_is_name()
    const char *value;
};

// The recordings that a query is about. Zeroed texts and numbers mean all.
struct store_scope {
    const char *service;
    const char *version;
    const char *host;
    int64_t since; // seconds of Unix time, included
    int64_t until; // not included; 0: no end
    int64_t recording_id;
    const struct store_label *labels; // borrowed; all of them
    size_t label_count;               // at most QUERY_LABELS_MAX
    bool has_all_states;              // of each run, not the last alone
    bool is_per_second;               // costs by the seconds that their recordings lasted
    enum cost cost;                   // recordings that do not know it are left out
    bool is_any_cost;                 // unless this is set
    uint32_t limit;                   // of rows; 0: all
};

struct store;

// Open a store: an URL of a ClickHouse server, else the path of a SQLite file. NULL: $CAIRN_STORE,
// or store.db in the user's data folder. `creates`: make a store that does not exist.
enum err store_open(const char *place, bool creates, struct store **out, struct err_info *info)
    MUST_USE;
void store_close(struct store *store);   // accepts NULL
void store_closep(struct store **store); // for CLEANUP

// Whether the text is the name of a label: letters, digits and _ - . / only, so that no name looks
// like what JSON has between two labels.
bool store_label_is_name(const char *text);

// Tell which recordings the store has.
enum err store_find_known(struct store *store,
                          const int64_t *ids,
                          size_t count,
                          bool *out_known,
                          struct err_info *info) MUST_USE;

// Add recordings, all or none in a file of SQLite. out_is_new[i] is false if the store has it
// already. In ClickHouse each table gets one INSERT.
enum err store_add(struct store *store,
                   const struct recording_rows *const *recordings,
                   size_t count,
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

// Remove the recordings of the scope that the policy does not keep at `now_s`, and all that only
// they use. `policy` NULL: it keeps none.
enum err store_prune(struct store *store,
                     const struct store_scope *scope,
                     const struct retention_policy *policy,
                     int64_t now_s,
                     uint64_t *out_count,
                     struct err_info *info) MUST_USE;
