// SPDX-License-Identifier: MIT
// sqlite_tables: see sqlite_tables.h.
#include "store/sqlite_tables.h"

#include "base/compiler.h"
#include "store/store_schema.h"

enum {
    APPLICATION_ID = 0x6361736f, // as in store_schema.c
};

static MUST_USE enum err create_schema(struct store *engine, struct err_info *info)
{
    struct err_info ignored = {0};
    // Neither may be set within a transaction. Without them the store works, too.
    (void)engine->kind->run(engine, "PRAGMA auto_vacuum=FULL", &ignored);
    (void)engine->kind->run(engine, "PRAGMA journal_mode=WAL", &ignored);
    TRY(engine->kind->begin(engine, info));
    return engine_end_transaction(engine, engine_run_all(engine, sqlite_dialect.schema, info),
                                  info);
}

// Give a store of version 1 what this one has, unless another program has just done so.
static MUST_USE enum err upgrade_schema(struct store *engine, struct err_info *info)
{
    int64_t version = 0;
    TRY(engine->kind->begin(engine, info));
    enum err problem =
        engine_number(engine, "PRAGMA user_version", (struct store_value){0}, &version, info);
    if (problem == ERR_OK && version == 1) {
        problem = engine_run_all(engine, sqlite_dialect.upgrade, info);
    }
    return engine_end_transaction(engine, problem, info);
}

enum err
sqlite_tables_check(struct store *engine, const char *path, bool creates, struct err_info *info)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t tables = 0;
    const struct store_value none = {0};
    // The tables first: another program may make the store at this moment, all in one transaction.
    TRY(engine_number(engine, "SELECT count(*) FROM sqlite_master", none, &tables, info));
    TRY(engine_number(engine, "PRAGMA application_id", none, &application, info));
    TRY(engine_number(engine, "PRAGMA user_version", none, &version, info));
    if (application == 0 && tables == 0) { // also what is left where a store could not begin
        return creates ? create_schema(engine, info)
                       : err_set(info, ERR_UNSUPPORTED,
                                 "'%s' is empty: 'cairn store add' makes it a store", path);
    }
    if (application != APPLICATION_ID) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' is not a store of cairn", path);
    }
    if (version == 1) {
        return upgrade_schema(engine, info);
    }
    if (version != STORE_VERSION) {
        return err_set(info, ERR_UNSUPPORTED,
                       "the store '%s' has version %lld, and this cairn reads version %d", path,
                       (long long)version, STORE_VERSION);
    }
    return ERR_OK;
}
