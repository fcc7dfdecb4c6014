// SPDX-License-Identifier: MIT
// sqlite_engine: a store in one file.
//
// The file has a write-ahead log, so queries do not wait for additions. A writer waits for other
// writers for up to BUSY_MS. Ctrl-C or a full disk during a transaction leaves the state before it.
// The file is private to its user, because recordings have command lines. One that may only be
// read, by its mode or on a read-only file system, can be queried while no program has it open.
//
// A user's statement may only read: an authorizer refuses every other action. Its values, its
// memory and its time have bounds, and Ctrl-C ends it. A file is taken for a store only by its
// application id. Nothing in a foreign or damaged file is changed. Context: H.
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/http/http_client.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "host/text/format.h"
#include "host/text/strbuf.h"
#include "store/engine.h"
#include "store/sqlite_tables.h"
#include "store/store_schema.h"
#include "store/wal_aside.h"

enum {
    BUSY_MS = 60000,
    FOREIGN_VALUE_MAX_BYTES = 64 << 20,
    FOREIGN_MEMORY_MAX_BYTES = 512 << 20,
    STEPS_PER_LOOK = 10000, // of SQLite's virtual machine; less than a millisecond
};

struct sqlite_engine {
    struct store engine;
    sqlite3 *database;                 // owned
    char *path;                        // owned
    struct wal_aside *aside;           // owned; the connection's file system
    sqlite3_stmt *inserts[PART_COUNT]; // owned; NULL until the first put
    uint64_t end_ms; // of a user's statement (CLOCK_MONOTONIC); UINT64_MAX: no limit; 0: none runs
    bool lacks_room; // the last failure was for lack of room on the disk
};

static struct sqlite_engine *sqlite_of(struct store *engine)
{
    return (struct sqlite_engine *)engine;
}

// SQLite does not keep the error of a write that succeeded in part.
static enum err fail_with_io_error(const struct sqlite_engine *e, struct err_info *info)
{
    const int problem = sqlite3_system_errno(e->database);
    return problem != 0 ? err_set_errno(info, problem, "the store '%s'", e->path)
           : sqlite3_extended_errcode(e->database) == SQLITE_IOERR_WRITE
               ? err_set(info, ERR_IO,
                         "the store '%s' cannot grow: a limit on the size of files (ulimit -f), or "
                         "its disk",
                         e->path)
               : err_set(info, ERR_IO, "the store '%s': %s", e->path, sqlite3_errmsg(e->database));
}

// Whether the disk, or the user's part of it, is full. On a full disk SQLite has no room for the
// index beside its log either, and cannot even read.
static bool is_for_lack_of_room(const struct sqlite_engine *e)
{
    const int code = sqlite3_extended_errcode(e->database);
    const int problem = sqlite3_system_errno(e->database);
    return code == SQLITE_FULL ||
           ((code & UINT8_MAX) == SQLITE_IOERR && (problem == EDQUOT || problem == ENOSPC));
}

static enum err fail_with_message(struct sqlite_engine *e, struct err_info *info)
{
    const int code = sqlite3_errcode(e->database);
    e->lacks_room = is_for_lack_of_room(e);
    switch (e->lacks_room && sqlite3_system_errno(e->database) == ENOSPC ? SQLITE_FULL : code) {
    case SQLITE_FULL:
        return err_set(info, ERR_IO, "the disk of the store '%s' is full%s", e->path,
                       wal_aside_has_no_room(e->aside)
                           ? ", and no other disk has room for what a removal writes (TMPDIR, "
                             "/var/tmp, /tmp, /dev/shm)"
                           : "");
    case SQLITE_BUSY:
        return err_set(info, ERR_IO, "the store '%s' is in use by another program", e->path);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return err_set(info, ERR_CORRUPT, "'%s' is not a store, or it is damaged", e->path);
    case SQLITE_NOMEM:
        return e->end_ms == 0
                   ? ERR_NO_MEMORY
                   : err_set(info, ERR_LIMIT, "the query needs more than %d MiB of memory",
                             FOREIGN_MEMORY_MAX_BYTES >> 20);
    case SQLITE_INTERRUPT:
        return err_set(info, ERR_LIMIT, "the query takes longer than %s (--time-limit)",
                       format_duration(e->engine.limit_ms * NS_PER_MS).text);
    case SQLITE_CANTOPEN:
        if (wal_aside_refused(e->aside) != NULL) {
            return err_set(info, ERR_PERMISSION,
                           "the store '%s' needs its log '%s', which is gone or another user's",
                           e->path, wal_aside_refused(e->aside));
        }
        return err_set_errno(info, sqlite3_system_errno(e->database), "cannot open the store '%s'",
                             e->path);
    case SQLITE_IOERR:
        return fail_with_io_error(e, info);
    case SQLITE_TOOBIG:
        return err_set(info, ERR_LIMIT, "the query makes a value of more than %d MiB",
                       FOREIGN_VALUE_MAX_BYTES >> 20);
    case SQLITE_READONLY:
        return err_set(info, ERR_PERMISSION, "the store '%s' cannot be written to", e->path);
    default:
        return err_set(info, ERR_IO, "the store '%s': %s", e->path, sqlite3_errmsg(e->database));
    }
}

static MUST_USE enum err run_sql(struct sqlite_engine *e, const char *sql, struct err_info *info)
{
    return sqlite3_exec(e->database, sql, NULL, NULL, NULL) == SQLITE_OK
               ? ERR_OK
               : fail_with_message(e, info);
}

static enum err sqlite_run(struct store *engine, const char *sql, struct err_info *info)
{
    return run_sql(sqlite_of(engine), sql, info);
}

static void disconnect(struct sqlite_engine *e)
{
    for (size_t i = 0; i < PART_COUNT; i++) {
        (void)sqlite3_finalize(e->inserts[i]); // repeats an error that was reported
        e->inserts[i] = NULL;
    }
    (void)sqlite3_close(e->database); // no statement is left
    e->database = NULL;
}

static void close_engine(struct store *engine)
{
    struct sqlite_engine *e = sqlite_of(engine);
    disconnect(e);
    wal_aside_free(e->aside);
    free(e->path);
    free(e);
}

static void bind_values(sqlite3_stmt *statement, const struct store_value *values, size_t count)
{
    const int used = sqlite3_bind_parameter_count(statement);
    for (int i = 0; i < (int)count && i < used; i++) {
        const struct store_value *value = &values[i];
        switch (value->kind) { // sqlite3_step reports failures
        case STORE_NULL:
            (void)sqlite3_bind_null(statement, i + 1);
            break;
        case STORE_UNSIGNED: // in no value of ours
        case STORE_INTEGER:
            (void)sqlite3_bind_int64(statement, i + 1, value->integer);
            break;
        case STORE_REAL:
            (void)sqlite3_bind_double(statement, i + 1, value->real);
            break;
        case STORE_TEXT:
            (void)sqlite3_bind_text(statement, i + 1, value->text, -1, SQLITE_STATIC);
            break;
        }
    }
}

// --- queries -----------------------------------------------------------------------------------

// Return whether a function only computes. The others load code, or show and take addresses of it.
static bool is_harmless(const char *function)
{
    static const char *const others[] = {"load_extension", "fts3_tokenizer"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (strcmp(function, others[i]) == 0) {
            return false;
        }
    }
    return true;
}

static int permit_reading(void *context,
                          int action,
                          const char *first,
                          const char *second,
                          const char *database,
                          const char *trigger)
{
    (void)context;
    (void)first;
    (void)database;
    (void)trigger;
    const bool reads = action == SQLITE_SELECT || action == SQLITE_READ ||
                       action == SQLITE_RECURSIVE ||
                       (action == SQLITE_FUNCTION && is_harmless(second));
    return reads ? SQLITE_OK : SQLITE_DENY;
}

static MUST_USE enum err add_row(sqlite3_stmt *statement, struct store_table *out)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        struct store_value value = {0};
        size_t len = 0;
        switch (sqlite3_column_type(statement, i)) {
        case SQLITE_NULL:
            break;
        case SQLITE_INTEGER:
            value = store_integer(sqlite3_column_int64(statement, i));
            break;
        case SQLITE_FLOAT:
            value.kind = STORE_REAL;
            value.real = sqlite3_column_double(statement, i);
            break;
        default: { // SQLITE_TEXT and SQLITE_BLOB
            const char *text = (const char *)sqlite3_column_text(statement, i);
            value = store_text(text != NULL ? text : "");
            len = strlen(value.text);
        }
        }
        TRY(store_table_add(out, &value, len));
    }
    return ERR_OK;
}

static MUST_USE enum err fetch_row(sqlite3_stmt *statement, int *status, struct store_table *out)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        const char *name = sqlite3_column_name(statement, i);
        TRY(store_table_add_column(out, name != NULL ? name : ""));
    }
    while ((*status = sqlite3_step(statement)) == SQLITE_ROW) {
        TRY(add_row(statement, out));
    }
    return ERR_OK;
}

// Compile one statement. A user's may only read, and nothing may follow it.
static MUST_USE enum err prepare_statement(struct sqlite_engine *e,
                                           const char *sql,
                                           bool is_foreign,
                                           sqlite3_stmt **out,
                                           struct err_info *info)
{
    const char *rest = "";
    // json_each declares its own table at its first use, which the authorizer would refuse.
    (void)sqlite3_exec(e->database, "SELECT 1 FROM json_each('[]')", NULL, NULL, NULL);
    (void)sqlite3_set_authorizer(e->database, is_foreign ? permit_reading : NULL, NULL); // OK
    const int status = sqlite3_prepare_v2(e->database, sql, -1, out, &rest);
    (void)sqlite3_set_authorizer(e->database, NULL, NULL); // always succeeds
    // The authorizer is not asked about VACUUM.
    if (status == SQLITE_AUTH ||
        (status == SQLITE_OK && is_foreign && sqlite3_stmt_readonly(*out) == 0)) {
        (void)sqlite3_finalize(*out); // it never ran; NULL is accepted
        *out = NULL;
        return err_set(info, ERR_PERMISSION, "a query may only read the store");
    }
    if (status != SQLITE_OK && is_foreign) {
        return err_set(info, ERR_INVALID, "the query: %s", sqlite3_errmsg(e->database));
    }
    if (status != SQLITE_OK) {
        return fail_with_message(e, info);
    }
    if (*out == NULL || rest[strspn(rest, "; \t\r\n")] != '\0') {
        (void)sqlite3_finalize(*out); // it never ran
        *out = NULL;
        return err_set(info, ERR_INVALID, "a query must be one statement");
    }
    return ERR_OK;
}

static int is_late(void *context)
{
    const struct sqlite_engine *e = context;
    return clock_monotonic_ms() > e->end_ms;
}

// A user's statement can ask for a value of any size, and one step of it cannot be interrupted.
// Return the usual limit of a value.
static int begin_foreign(struct sqlite_engine *e)
{
    e->end_ms = e->engine.limit_ms != 0 ? clock_monotonic_ms() + e->engine.limit_ms : UINT64_MAX;
    sqlite3_progress_handler(e->database, STEPS_PER_LOOK, is_late, e);
    (void)sqlite3_hard_heap_limit64(FOREIGN_MEMORY_MAX_BYTES); // returns the former one
    return sqlite3_limit(e->database, SQLITE_LIMIT_LENGTH, FOREIGN_VALUE_MAX_BYTES); // likewise
}

static void end_foreign(struct sqlite_engine *e, int usual_bytes)
{
    e->end_ms = 0;
    sqlite3_progress_handler(e->database, 0, NULL, NULL);
    (void)sqlite3_limit(e->database, SQLITE_LIMIT_LENGTH, usual_bytes);
    (void)sqlite3_hard_heap_limit64(0); // none; as above
}

static enum err sqlite_query(struct store *engine,
                             const char *sql,
                             const struct store_value *values,
                             size_t count,
                             bool is_foreign,
                             struct store_table *out,
                             struct err_info *info)
{
    struct sqlite_engine *e = sqlite_of(engine);
    sqlite3_stmt *statement = NULL;
    const int usual_bytes = is_foreign ? begin_foreign(e) : 0;
    enum err problem = prepare_statement(e, sql, is_foreign, &statement, info);
    int status = SQLITE_OK;
    if (problem == ERR_OK) {
        bind_values(statement, values, count);
        problem = fetch_row(statement, &status, out);
    }
    if (problem == ERR_LIMIT) {
        (void)err_set(info, problem, "the answer is too long: use LIMIT"); // returned below
    } else if (problem == ERR_OK && status != SQLITE_DONE) {
        problem = fail_with_message(e, info);
    }
    (void)sqlite3_finalize(statement); // repeats the result of sqlite3_step; NULL is accepted
    if (is_foreign) {
        end_foreign(e, usual_bytes);
    }
    return problem;
}

// --- additions -----------------------------------------------------------------------------------

static enum err sqlite_begin(struct store *engine, struct err_info *info)
{
    return run_sql(sqlite_of(engine), "BEGIN IMMEDIATE", info);
}

static enum err sqlite_put(struct store *engine,
                           enum store_part part,
                           const struct store_value *values,
                           size_t count,
                           struct err_info *info)
{
    struct sqlite_engine *e = sqlite_of(engine);
    sqlite3_stmt **insert = &e->inserts[part];
    if (*insert == NULL &&
        sqlite3_prepare_v3(e->database, sqlite_dialect.insert[part], -1, SQLITE_PREPARE_PERSISTENT,
                           insert, NULL) != SQLITE_OK) {
        return fail_with_message(e, info);
    }
    bind_values(*insert, values, count);
    const int status = sqlite3_step(*insert);
    const enum err problem = status == SQLITE_DONE ? ERR_OK : fail_with_message(e, info);
    (void)sqlite3_reset(*insert); // repeats the result of sqlite3_step; the texts may end now
    return problem;
}

static enum err sqlite_commit(struct store *engine, struct err_info *info)
{
    return run_sql(sqlite_of(engine), "COMMIT", info);
}

static void sqlite_abandon(struct store *engine)
{
    // Without a transaction there is nothing to do; some failures have ended it already.
    (void)sqlite3_exec(sqlite_of(engine)->database, "ROLLBACK", NULL, NULL, NULL);
}

static MUST_USE enum err
remove_all(struct sqlite_engine *e, const int64_t *ids, size_t count, struct err_info *info)
{
    static const char *const tables[] = {"DELETE FROM row_costs WHERE recording_id=?1",
                                         "DELETE FROM recordings WHERE recording_id=?1"};
    for (size_t i = 0; i < count; i++) {
        for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
            CLEANUP(store_table_release) struct store_table none = {0};
            const struct store_value id = store_integer(ids[i]);
            TRY(sqlite_query(&e->engine, tables[t], &id, 1, false, &none, info));
        }
    }
    return run_sql(e,
                   "DELETE FROM stacks WHERE stack_id NOT IN (SELECT stack_id FROM row_costs);"
                   "DELETE FROM functions WHERE function_id NOT IN (SELECT function_id FROM stacks)"
                   " AND function_id NOT IN (SELECT value FROM stacks,"
                   " json_each('['||stacks.frames||']'));",
                   info);
}

static MUST_USE enum err remove_in_transaction(struct sqlite_engine *e,
                                               const int64_t *ids,
                                               size_t count,
                                               struct err_info *info)
{
    TRY(sqlite_begin(&e->engine, info));
    return engine_end_transaction(&e->engine, remove_all(e, ids, count, info), info);
}

// --- opening -------------------------------------------------------------------------------------

// SQLite has these two only if it was built with them.
static void round_up(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_double(context, ceil(sqlite3_value_double(values[0])));
}
static void square_root(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_double(context, sqrt(sqlite3_value_double(values[0])));
}

// Whether this user may only read the file, and no program has it open. Even to read a log, SQLite
// wants to write an index beside it; without a log, the file is all there is.
static bool is_at_rest(const char *path)
{
    CLEANUP(strbuf_release) struct strbuf log = {0};
    strbuf_printf(&log, "%s-wal", path);
    return access(path, W_OK) != 0 && strbuf_result(&log) == ERR_OK &&
           access(strbuf_text(&log), F_OK) != 0;
}

static MUST_USE enum err open_database(struct sqlite_engine *e, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf place = {0};
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX; // one thread
    if (is_at_rest(e->path)) {
        flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
        strbuf_append_text(&place, "file:");
        http_append_escaped(&place, e->path);
        strbuf_append_text(&place, "?immutable=1");
    } else {
        strbuf_append_text(&place, e->path);
    }
    TRY(strbuf_result(&place));
    if (sqlite3_open_v2(strbuf_text(&place), &e->database, flags, wal_aside_name(e->aside)) !=
        SQLITE_OK) {
        return e->database != NULL ? fail_with_message(e, info) : ERR_NO_MEMORY;
    }
    return ERR_OK;
}

// SQLite creates files beside the store and follows what it finds there.
static MUST_USE enum err refuse_planted(const struct sqlite_engine *e, struct err_info *info)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        CLEANUP(strbuf_release) struct strbuf path = {0};
        strbuf_printf(&path, "%s%s", e->path, suffixes[i]);
        TRY(strbuf_result(&path));
        TRY(file_refuse_planted(strbuf_text(&path), info));
    }
    return ERR_OK;
}

// `is_alone`: without the index that programs share, which takes room on the disk.
static MUST_USE enum err
connect_to(struct sqlite_engine *e, bool creates, bool is_alone, struct err_info *info)
{
    TRY(open_database(e, info));
    (void)sqlite3_busy_timeout(e->database, BUSY_MS); // always succeeds
    (void)sqlite3_db_config(e->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL); // known to both
    (void)sqlite3_db_config(e->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);      // the same
    if (sqlite3_create_function(e->database, "ceil", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                round_up, NULL, NULL) != SQLITE_OK ||
        sqlite3_create_function(e->database, "sqrt", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                square_root, NULL, NULL) != SQLITE_OK) {
        return fail_with_message(e, info);
    }
    if (is_alone) {
        TRY(run_sql(e, "PRAGMA locking_mode=EXCLUSIVE", info));
    }
    TRY(sqlite_tables_check(&e->engine, e->path, creates, info));
    return run_sql(e,
                   "PRAGMA synchronous=NORMAL;"
                   "PRAGMA wal_autocheckpoint=4096",
                   info);
}

// On a full disk only who does not share the store can read it. Who adds has no use for that.
static MUST_USE enum err
connect_or_alone(struct sqlite_engine *e, bool creates, struct err_info *info)
{
    const enum err problem = connect_to(e, creates, false, info);
    if (problem == ERR_OK || creates || !e->lacks_room) {
        return problem;
    }
    disconnect(e);
    return connect_to(e, false, true, info);
}

static MUST_USE enum err open_file(struct sqlite_engine *e, bool creates, struct err_info *info)
{
    struct stat status;
    TRY(file_refuse_planted(e->path, info));
    TRY(refuse_planted(e, info));
    if (stat(e->path, &status) == 0 && !S_ISREG(status.st_mode)) { // opening may wait forever
        return err_set(info, ERR_INVALID, "the store '%s' is not a regular file", e->path);
    }
    if (creates) {
        TRY(file_make_parents(e->path, info));
        TRY(file_create_missing(e->path, FILE_MODE_PRIVATE, info));
    } else if (access(e->path, F_OK) != 0 && errno == ENOENT) {
        return err_set(
            info, ERR_NOT_FOUND,
            "cannot open the store '%s': it does not exist; 'cairn store add' creates it", e->path);
    } else if (access(e->path, R_OK) != 0) {
        return err_set_errno(info, errno, "cannot open the store '%s'", e->path);
    }
    TRY(wal_aside_new(&e->aside, info));
    return connect_or_alone(e, creates, info);
}

// On a full disk, remove with the log on another one. This locks the store until it is closed.
static enum err
remove_recordings(struct store *engine, const int64_t *ids, size_t count, struct err_info *info)
{
    struct sqlite_engine *e = sqlite_of(engine);
    const enum err problem = remove_in_transaction(e, ids, count, info);
    if (problem == ERR_OK || !e->lacks_room) {
        return problem;
    }
    disconnect(e);
    wal_aside_move(e->aside);
    TRY(connect_to(e, false, true, info));
    TRY(remove_in_transaction(e, ids, count, info));
    // What is removed is removed: if this fails, the next that opens the store tries again.
    (void)sqlite3_exec(e->database, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    return ERR_OK;
}

static const struct engine_kind sqlite_kind = {
    .dialect = &sqlite_dialect,
    .close = close_engine,
    .query = sqlite_query,
    .run = sqlite_run,
    .begin = sqlite_begin,
    .put = sqlite_put,
    .commit = sqlite_commit,
    .abandon = sqlite_abandon,
    .remove = remove_recordings,
};

enum err
sqlite_engine_open(const char *path, bool creates, struct store **out, struct err_info *info)
{
    struct sqlite_engine *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return ERR_NO_MEMORY;
    }
    e->engine.kind = &sqlite_kind;
    // SQLite would take the name ":memory:" for a store that ends with the command.
    CLEANUP(strbuf_release) struct strbuf place = {0};
    strbuf_printf(&place, "%s%s", path[0] == ':' ? "./" : "", path);
    e->path = strbuf_take(&place);
    const enum err problem = e->path != NULL ? open_file(e, creates, info) : ERR_NO_MEMORY;
    return engine_finish_open(&e->engine, problem, out);
}
