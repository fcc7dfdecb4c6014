// SPDX-License-Identifier: MIT
// store_schema: the tables of a store, in the dialects of both databases.
//
//   recordings   one row for each recording: where it comes from, and its totals
//   functions    the distinct functions of all recordings; the id is a hash of name and module
//   stacks       the distinct call stacks; the id is a hash of the functions and the call site
//   rows         the costs of each stack in each recording, with service, version, host and time
//
// In SQLite, `rows` is a view of the table row_costs and of recordings, which holds the texts once.
// docs/user/store.md describes the columns. A change of their meaning raises STORE_VERSION
// (engine.h). Context: H; pure.
#pragma once

#include "store/engine.h"

// States the version of the tables in ClickHouse, which has no place of its own for it.
#define CLICKHOUSE_MARK "INSERT INTO cairn_store VALUES(5)"

extern const struct dialect sqlite_dialect;
extern const struct dialect clickhouse_dialect;

// Append the statements that make the tables in ClickHouse, for people to run. With a cluster, each
// of its servers runs all of them: it then has tables of its own in the database cairn_part, and in
// the database cairn Distributed tables over all servers. Functions and stacks are divided by their
// ids, which are hashes of their content, so each is on one server, where equal ones are merged;
// recordings and rows by recording. ERR_INVALID: not the name of a cluster; ERR_NO_MEMORY.
enum err store_schema_write(const char *cluster, struct strbuf *out, struct err_info *info)
    MUST_USE;
