// SPDX-License-Identifier: MIT
// engine: see engine.h.
#include "store/engine.h"

#include "base/compiler.h"

enum err engine_finish_open(struct store *engine, enum err problem, struct store **out)
{
    if (problem != ERR_OK) {
        engine->kind->close(engine);
        return problem;
    }
    *out = engine;
    return ERR_OK;
}

enum err engine_number(struct store *engine,
                       const char *sql,
                       struct store_value value,
                       int64_t *out,
                       struct err_info *info)
{
    CLEANUP(store_table_release) struct store_table table = {0};
    TRY(engine->kind->query(engine, sql, &value, 1, false, &table, info));
    *out = store_table_rows(&table) > 0 ? store_table_integer(&table, 0, 0) : 0;
    return ERR_OK;
}

enum err engine_run_all(struct store *engine, const char *const *statements, struct err_info *info)
{
    for (; *statements != NULL; statements++) {
        TRY(engine->kind->run(engine, *statements, info));
    }
    return ERR_OK;
}

enum err engine_end_transaction(struct store *engine, enum err problem, struct err_info *info)
{
    problem = problem == ERR_OK ? engine->kind->commit(engine, info) : problem;
    if (problem != ERR_OK) {
        engine->kind->abandon(engine);
    }
    return problem;
}
