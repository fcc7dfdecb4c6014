// SPDX-License-Identifier: MIT
// store_schema: see store_schema.h.
#include "store/store_schema.h"

#include <stddef.h>

// The costs (profile/model/cost.h), in the order of enum cost.
#define COSTS(type)                                                                       \
    "peak_bytes " type ",peak_blocks " type ",allocations " type ",allocated_bytes " type \
    ",frees " type ",freed_bytes " type ",temporary " type ",temporary_bytes " type       \
    ",leaked_bytes " type ",leaked_allocations " type ",own_peak_bytes " type

// Of a sampled recording whose errors are known: struct sampling, `bytes`; else 0. Since version 2.
#define INTERVAL(integer) "interval_bytes " integer " DEFAULT 0"

// id: the type of a key; text, integer: of other columns.
#define RECORDINGS(id, text, integer)                                                          \
    "CREATE TABLE IF NOT EXISTS recordings(recording_id " id ",service " text ",version " text \
    ",host " text ",time " integer ",path " text ",program " text ",command_line " text        \
    ",labels " text ",state " text ",wait_status " integer ",is_oom " integer                  \
    ",is_estimate " integer ",unknown " text ",runtime_ms " integer ",peak_time_ms " integer   \
    ",peak_error_bytes " integer ",peak_rss_bytes " integer ",lost_events " integer            \
    "," COSTS(integer) "," INTERVAL(integer) ")"
#define FUNCTIONS(id, text)                                                                  \
    "CREATE TABLE IF NOT EXISTS functions(function_id " id ",name " text ",short_name " text \
    ",module " text ")"
#define STACKS(id, text, integer)                                                          \
    "CREATE TABLE IF NOT EXISTS stacks(stack_id " id ",function_id " integer ",file " text \
    ",line " integer ",frames " text ")"

static const char *const sqlite_schema[] = {
    RECORDINGS("INTEGER PRIMARY KEY", "TEXT", "INT"),
    FUNCTIONS("INTEGER PRIMARY KEY", "TEXT"),
    STACKS("INTEGER PRIMARY KEY", "TEXT", "INT"),
    "CREATE TABLE IF NOT EXISTS row_costs(recording_id INT,stack_id INT,function_id INT," COSTS(
        "INT") ",PRIMARY KEY(recording_id,stack_id)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS recordings_of ON recordings(service,version,host,time)",
    "CREATE VIEW IF NOT EXISTS rows AS SELECT r.service,r.version,r.host,r.time,c.*"
    " FROM row_costs AS c JOIN recordings AS r ON r.recording_id=c.recording_id",
    "PRAGMA application_id=0x6361736f",
    "PRAGMA user_version=2",
    NULL,
};

static const char *const sqlite_upgrade[] = {
    "ALTER TABLE recordings ADD COLUMN " INTERVAL("INT"),
    "PRAGMA user_version=2",
    NULL,
};

#define MERGING(columns) " ENGINE=ReplacingMergeTree() ORDER BY(" columns ")"

static const char *const clickhouse_schema[] = {
    RECORDINGS("Int64", "String", "Int64") MERGING("service,version,host,time,recording_id"),
    FUNCTIONS("Int64", "String") MERGING("function_id"),
    STACKS("Int64", "String", "Int64") MERGING("stack_id"),
    "CREATE TABLE IF NOT EXISTS rows(service String,version String,host String,time Int64,"
    "recording_id Int64,stack_id Int64,function_id Int64," COSTS(
        "Int64") ")"
                 " ENGINE=ReplacingMergeTree() PARTITION BY toYYYYMM(toDateTime(time))"
                 " ORDER BY(service,version,host,time,recording_id,stack_id)",
    "CREATE TABLE IF NOT EXISTS cairn_store(version Int64) ENGINE=ReplacingMergeTree()"
    " ORDER BY version",
    CLICKHOUSE_MARK,
    NULL,
};

static const char *const clickhouse_upgrade[] = {
    "ALTER TABLE recordings ADD COLUMN " INTERVAL("Int64"),
    NULL,
};

#define ELEVEN "?,?,?,?,?,?,?,?,?,?,?"

const struct dialect sqlite_dialect = {
    .left_join = "LEFT JOIN",
    .in = "IN",
    .integer = "INTEGER",
    .insert = {[PART_FUNCTIONS] = "INSERT OR IGNORE INTO functions VALUES(?,?,?,?)",
               [PART_STACKS] = "INSERT OR IGNORE INTO stacks VALUES(?,?,?,?,?)",
               [PART_ROWS] = "INSERT INTO row_costs SELECT ?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,"
                             "?16,?17,?18",
               [PART_RECORDINGS] =
                   "INSERT INTO recordings VALUES(?,?,?,?,?,?,?,?," ELEVEN "," ELEVEN ",?)"},
    .schema = sqlite_schema,
    .upgrade = sqlite_upgrade,
};

const struct dialect clickhouse_dialect = {
    .left_join = "GLOBAL ANY LEFT JOIN",
    .in = "GLOBAL IN",
    .integer = "Int64",
    .insert = {[PART_FUNCTIONS] = "INSERT INTO functions FORMAT TabSeparated",
               [PART_STACKS] = "INSERT INTO stacks FORMAT TabSeparated",
               [PART_ROWS] = "INSERT INTO rows FORMAT TabSeparated",
               [PART_RECORDINGS] = "INSERT INTO recordings FORMAT TabSeparated"},
    .schema = clickhouse_schema,
    .upgrade = clickhouse_upgrade,
};
