// SPDX-License-Identifier: MIT
// store_schema: see store_schema.h.
#include "store/store_schema.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"

// X(column) for each cost (profile/model/cost.h), in the order of enum cost, with commas between.
// What is live at the end had other names in version 1, although it may not be leaked.
// clang-format off
#define EACH_COST_BUT(X, live_bytes, live_blocks)                                              \
    X("peak_bytes") "," X("peak_blocks") "," X("allocations") "," X("allocated_bytes") ","     \
    X("frees") "," X("freed_bytes") "," X("temporary") "," X("temporary_bytes") ","            \
    X(live_bytes) "," X(live_blocks) "," X("own_peak_bytes")
// clang-format on
#define EACH_COST(X)      EACH_COST_BUT(X, "live_bytes", "live_blocks")
#define EACH_COST_1(X)    EACH_COST_BUT(X, "leaked_bytes", "leaked_allocations")
#define AS_INT(cost)      cost " INT"
#define AS_NULLABLE(cost) cost " Nullable(Int64)"
#define MODIFIED(cost)    "MODIFY COLUMN " AS_NULLABLE(cost)

// Of a sampled recording whose errors are known: struct sampling, `bytes`; else 0.
#define INTERVAL(integer) "interval_bytes " integer " DEFAULT 0"

// The run that a recording is a state of, and its order among these.
#define RUN(integer) "run_id " integer ",run_order " integer

// id: the type of a key; text, integer: of other columns; costs: the columns of the costs.
#define RECORDINGS(id, text, integer, costs)                                                   \
    "CREATE TABLE IF NOT EXISTS recordings(recording_id " id ",service " text ",version " text \
    ",host " text ",time " integer ",path " text ",program " text ",command_line " text        \
    ",labels " text ",state " text ",wait_status " integer ",is_oom " integer                  \
    ",is_estimate " integer ",unknown " text ",runtime_ms " integer ",peak_time_ms " integer   \
    ",peak_error_bytes " integer ",peak_rss_bytes " integer ",lost_events " integer "," costs  \
    "," INTERVAL(integer) "," RUN(integer) ")"
#define FUNCTIONS(id, text)                                                                  \
    "CREATE TABLE IF NOT EXISTS functions(function_id " id ",name " text ",short_name " text \
    ",module " text ")"
#define STACKS(id, text, integer)                                                          \
    "CREATE TABLE IF NOT EXISTS stacks(stack_id " id ",function_id " integer ",file " text \
    ",line " integer ",frames " text ")"

static const char *const sqlite_schema[] = {
    RECORDINGS("INTEGER PRIMARY KEY", "TEXT", "INT", EACH_COST(AS_INT)),
    FUNCTIONS("INTEGER PRIMARY KEY", "TEXT"),
    STACKS("INTEGER PRIMARY KEY", "TEXT", "INT"),
    "CREATE TABLE IF NOT EXISTS row_costs(recording_id INT,stack_id INT,function_id INT," EACH_COST(
        AS_INT) ",PRIMARY KEY(recording_id,stack_id)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS recordings_of ON recordings(service,version,host,time)",
    "CREATE VIEW IF NOT EXISTS rows AS SELECT r.service,r.version,r.host,r.time,c.*"
    " FROM row_costs AS c JOIN recordings AS r ON r.recording_id=c.recording_id",
    "PRAGMA application_id=0x6361736f",
    "PRAGMA user_version=5",
    NULL,
};

// In version 1 a cost that a recording does not know is 0.
#define IF_KNOWN(cost) cost "=CASE WHEN unknown LIKE '%," cost ",%' THEN NULL ELSE " cost " END"
#define IF_RECORDING_KNOWS(cost)                                 \
    cost "=CASE WHEN (SELECT unknown FROM recordings AS r WHERE" \
         " r.recording_id=row_costs.recording_id) LIKE '%," cost ",%' THEN NULL ELSE " cost " END"

// The names of unknown costs, in version 1.
#define NEW_NAMES(replace)                                           \
    replace "(" replace "(unknown,',leaked_bytes,',',live_bytes,')," \
            "',leaked_allocations,',',live_blocks,')"

// Each recording of version 1 is a run of its own.
static const char *const sqlite_upgrade[] = {
    "ALTER TABLE recordings ADD COLUMN " INTERVAL("INT"),
    "UPDATE recordings SET " EACH_COST_1(IF_KNOWN) " WHERE unknown<>''",
    "UPDATE row_costs SET " EACH_COST_1(
        IF_RECORDING_KNOWS) " WHERE recording_id IN (SELECT recording_id FROM recordings WHERE "
                            "unknown<>'')",
    "ALTER TABLE recordings RENAME COLUMN leaked_bytes TO live_bytes",
    "ALTER TABLE recordings RENAME COLUMN leaked_allocations TO live_blocks",
    "ALTER TABLE row_costs RENAME COLUMN leaked_bytes TO live_bytes",
    "ALTER TABLE row_costs RENAME COLUMN leaked_allocations TO live_blocks",
    "UPDATE recordings SET unknown=" NEW_NAMES("replace") " WHERE unknown<>''",
    "ALTER TABLE recordings ADD COLUMN run_id INT",
    "ALTER TABLE recordings ADD COLUMN run_order INT DEFAULT 0",
    "UPDATE recordings SET run_id=recording_id",
    "PRAGMA user_version=5",
    NULL,
};

#define MERGING(columns) " ENGINE=ReplacingMergeTree() ORDER BY(" columns ")"

static const char *const clickhouse_schema[] = {
    RECORDINGS("Int64", "String", "Int64", EACH_COST(AS_NULLABLE))
        MERGING("service,version,host,time,recording_id"),
    FUNCTIONS("Int64", "String") MERGING("function_id"),
    STACKS("Int64", "String", "Int64") MERGING("stack_id"),
    "CREATE TABLE IF NOT EXISTS rows(service String,version String,host String,time Int64,"
    "recording_id Int64,stack_id Int64,function_id Int64," EACH_COST(
        AS_NULLABLE) ")"
                     " ENGINE=ReplacingMergeTree() PARTITION BY toYYYYMM(toDateTime(time))"
                     " ORDER BY(service,version,host,time,recording_id,stack_id)",
    "CREATE TABLE IF NOT EXISTS cairn_store(version Int64) ENGINE=ReplacingMergeTree()"
    " ORDER BY version",
    CLICKHOUSE_MARK,
    NULL,
};

static const char *const clickhouse_interval[] = {
    "ALTER TABLE recordings ADD COLUMN " INTERVAL("Int64"),
    NULL,
};

static const char *const clickhouse_unknown[] = {
    "ALTER TABLE recordings " EACH_COST_1(MODIFIED),
    "ALTER TABLE rows " EACH_COST_1(MODIFIED),
    NULL,
};

// The tested server renames no column.
#define ALIAS "Nullable(Int64) ALIAS"
#define ALIASES                                     \
    "ADD COLUMN live_bytes " ALIAS " leaked_bytes," \
    "ADD COLUMN live_blocks " ALIAS " leaked_allocations"

static const char *const clickhouse_live[] = {
    "ALTER TABLE recordings " ALIASES,
    "ALTER TABLE rows " ALIASES,
    NULL,
};

// A Distributed table takes no mutation.
static const char *const clickhouse_unknown_names[] = {
    "ALTER TABLE recordings UPDATE unknown=" NEW_NAMES("replaceAll") " WHERE unknown<>''",
    NULL,
};

static const char *const clickhouse_runs[] = {
    "ALTER TABLE recordings ADD COLUMN run_id Int64 DEFAULT recording_id,"
    "ADD COLUMN run_order Int64 DEFAULT 0",
    NULL,
};

#define ELEVEN "?,?,?,?,?,?,?,?,?,?,?"

const struct dialect sqlite_dialect = {
    .left_join = "LEFT JOIN",
    .in = "IN",
    .integer = "INTEGER",
    .position = "instr",
    .names_subqueries = true,
    .insert = {[PART_FUNCTIONS] = "INSERT OR IGNORE INTO functions VALUES(?,?,?,?)",
               [PART_STACKS] = "INSERT OR IGNORE INTO stacks VALUES(?,?,?,?,?)",
               [PART_ROWS] = "INSERT INTO row_costs VALUES(?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,"
                             "?16,?17,?18)",
               [PART_RECORDINGS] =
                   "INSERT INTO recordings VALUES(?,?,?,?,?,?,?,?," ELEVEN "," ELEVEN ",?,?,?)"},
    .schema = sqlite_schema,
    .upgrade = sqlite_upgrade,
};

const struct dialect clickhouse_dialect = {
    .left_join = "GLOBAL ANY LEFT JOIN",
    .in = "GLOBAL IN",
    .integer = "Int64",
    .position = "position",
    .insert = {[PART_FUNCTIONS] = "INSERT INTO functions FORMAT TabSeparated",
               [PART_STACKS] = "INSERT INTO stacks FORMAT TabSeparated",
               [PART_ROWS] = "INSERT INTO rows FORMAT TabSeparated",
               [PART_RECORDINGS] = "INSERT INTO recordings FORMAT TabSeparated"},
    .schema = clickhouse_schema,
    .add_interval = clickhouse_interval,
    .add_unknown = clickhouse_unknown,
    .add_live = clickhouse_live,
    .rename_unknown = clickhouse_unknown_names,
    .add_runs = clickhouse_runs,
};

// --- the statements of a cluster -----------------------------------------------------------------

#define CREATES "CREATE TABLE IF NOT EXISTS "
#define INSERTS "INSERT INTO "

// What divides each table among the servers.
static const struct {
    const char *table;
    const char *key;
} divided[] = {
    {"recordings", "intHash64(recording_id)"},
    {"functions", "intHash64(function_id)"},
    {"stacks", "intHash64(stack_id)"},
    {"rows", "intHash64(recording_id)"},
    {"cairn_store", "0"},
};

// Append a statement, with the database before the name of its table.
static void append_statement(struct strbuf *out, const char *statement, const char *database)
{
    static const char *const starts[] = {CREATES, INSERTS};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        const size_t len = strlen(starts[i]);
        if (strncmp(statement, starts[i], len) == 0) {
            strbuf_printf(out, "%s%s%s;\n", starts[i], database, statement + len);
        }
    }
}

enum err store_schema_write(const char *cluster, struct strbuf *out, struct err_info *info)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (cluster != NULL && (cluster[0] == '\0' || cluster[strspn(cluster, letters)] != '\0')) {
        return err_set(info, ERR_INVALID, "--cluster: '%.100s' is not the name of a cluster",
                       cluster);
    }
    if (cluster != NULL) {
        strbuf_append_text(out, "CREATE DATABASE IF NOT EXISTS cairn_part;\n"
                                "CREATE DATABASE IF NOT EXISTS cairn;\n");
    }
    for (const char *const *at = clickhouse_schema; *at != NULL; at++) {
        append_statement(out, *at, cluster != NULL ? "cairn_part." : "");
    }
    for (size_t i = 0; cluster != NULL && i < ARRAY_LEN(divided); i++) {
        const char *table = divided[i].table;
        strbuf_printf(out,
                      CREATES "cairn.%s AS cairn_part.%s"
                              " ENGINE=Distributed('%s',cairn_part,%s,%s);\n",
                      table, table, cluster, table, divided[i].key);
    }
    return strbuf_result(out);
}
