// SPDX-License-Identifier: MIT
// store: see store.h.
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    HASH_STEP_BYTES = 256 * 1024,
    ID_DIGITS = 16,
};

// --- opening -------------------------------------------------------------------------------------

static bool is_url(const char *place)
{
    return strncmp(place, "http://", strlen("http://")) == 0 ||
           strncmp(place, "https://", strlen("https://")) == 0;
}

// Append the path of the user's own store.
static MUST_USE enum err append_own(struct strbuf *out, struct err_info *info)
{
    if (!file_append_user_folder(out, "XDG_DATA_HOME", ".local/share")) {
        return err_set(info, ERR_NOT_FOUND, "HOME is not set: name the store with --store");
    }
    strbuf_append_text(out, "/store.db");
    return strbuf_result(out);
}

enum err store_open(const char *place, bool creates, struct store **out, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf own = {0};
    if (place == NULL) {
        place = getenv("CAIRN_STORE");
    }
    if (place == NULL || place[0] == '\0') {
        TRY(append_own(&own, info));
        place = strbuf_text(&own);
    }
    if (!is_url(place) && strstr(place, "://") != NULL) {
        return err_set(info, ERR_INVALID, "--store takes a path, http://... or https://...");
    }
    return is_url(place) ? clickhouse_engine_open(place, creates, out, info)
                         : sqlite_engine_open(place, creates, out, info);
}

void store_close(struct store *store)
{
    if (store != NULL) {
        store->kind->close(store);
    }
}

void store_closep(struct store **store)
{
    store_close(*store);
}

// --- additions -----------------------------------------------------------------------------------

bool store_parse_id(const char *text, int64_t *out)
{
    const char *at = text;
    uint64_t number = 0;
    const bool is_number = number_take(&at, 16, &number) && at == text + ID_DIGITS && *at == '\0';
    *out = (int64_t)number;
    return is_number && number != 0;
}

static void hash_freep(XXH3_state_t **state)
{
    (void)XXH3_freeState(*state); // accepts NULL
}

enum err store_identify(const char *path, int64_t *out, struct err_info *info)
{
    CLEANUP(stream_closep) FILE *stream = NULL;
    CLEANUP(text_freep) char *buffer = malloc(HASH_STEP_BYTES);
    CLEANUP(hash_freep) XXH3_state_t *state = XXH3_createState();
    int fd;
    TRY(file_open_read(path, &fd, info));
    stream = fdopen(fd, "r");
    if (stream == NULL || buffer == NULL || state == NULL) {
        return ERR_NO_MEMORY;
    }
    (void)XXH3_64bits_reset(state); // fails without a state only
    for (size_t len; (len = fread(buffer, 1, HASH_STEP_BYTES, stream)) > 0;) {
        (void)XXH3_64bits_update(state, buffer, len); // the same
    }
    const int64_t hash = (int64_t)XXH3_64bits_digest(state);
    *out = hash != 0 ? hash : 1; // a scope has 0 for all
    return ferror(stream) != 0 ? err_set(info, ERR_IO, "cannot read '%s'", path) : ERR_OK;
}

static MUST_USE enum err add_new(struct store *store,
                                 struct recording_source *source,
                                 bool *out_is_new,
                                 struct err_info *info)
{
    int64_t known = 0;
    int64_t rows = 0;
    const struct store_value id = store_integer(source->id);
    TRY(engine_number(store, "SELECT count(*) FROM recordings WHERE recording_id=?1", id, &known,
                      info));
    if (known > 0) {
        *out_is_new = false;
        return ERR_OK;
    }
    // A server that failed between two tables has the rows already.
    TRY(engine_number(store, "SELECT count(*) FROM rows WHERE recording_id=?1", id, &rows, info));
    source->has_rows = rows > 0;
    TRY(recording_rows_put(source, store, info));
    TRY(store->kind->commit(store, info));
    *out_is_new = true;
    return ERR_OK;
}

enum err store_add(struct store *store,
                   const char *path,
                   const struct selection *selection,
                   const struct store_labels *labels,
                   bool *out_is_new,
                   struct err_info *info)
{
    struct recording_source source = {.selection = selection, .labels = labels, .path = path};
    bool is_new = false;
    TRY(store_identify(path, &source.id, info));
    TRY(store->kind->begin(store, info));
    const enum err problem = add_new(store, &source, &is_new, info);
    if (problem != ERR_OK || !is_new) {
        store->kind->abandon(store);
    }
    TRY(problem);
    *out_is_new = is_new;
    return ERR_OK;
}

// --- queries -----------------------------------------------------------------------------------

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

// Count the rows of a query without its limit, beyond those of its answer.
static MUST_USE enum err count_more(struct store *store,
                                    const char *sql,
                                    struct store_value values[QUERY_VALUES],
                                    struct store_table *answer,
                                    struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf counting = {0};
    CLEANUP(store_table_release) struct store_table count = {0};
    strbuf_printf(&counting, "SELECT count(*) FROM (%s)", sql);
    TRY(strbuf_result(&counting));
    values[QUERY_LIMIT] = store_integer(INT64_MAX);
    TRY(store->kind->query(store, strbuf_text(&counting), values, QUERY_VALUES, false, &count,
                           info));
    const size_t rows = store_table_rows(answer);
    const uint64_t all =
        store_table_rows(&count) > 0 ? (uint64_t)store_table_integer(&count, 0, 0) : 0;
    answer->more = all > rows ? all - rows : 0;
    return ERR_OK;
}

static MUST_USE enum err ask_number(struct store *store,
                                    const struct store_query *query,
                                    const struct store_scope *scope,
                                    const char *const *words,
                                    struct store_table *out,
                                    struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf sql = {0};
    char unknown[64];
    (void)snprintf(unknown, sizeof(unknown), "%%,%s,%%", // fits
                   scope->is_any_cost ? "-" : cost_get_info(scope->cost)->key);
    struct store_value values[QUERY_VALUES] = {
        store_text(or_empty(scope->service)),
        store_text(or_empty(scope->version)),
        store_text(or_empty(scope->host)),
        store_integer(scope->since),
        store_integer(scope->until > 0 ? scope->until : INT64_MAX),
        store_text(unknown),
        store_integer(scope->recording_id),
        [QUERY_LIMIT] = store_integer(scope->limit > 0 ? scope->limit : STORE_ROWS_MAX),
        store_text(words != NULL && query->words[0] != NULL ? words[0] : ""),
        store_text(words != NULL && query->words[1] != NULL ? words[1] : ""),
    };
    TRY(store_query_render(query, store->kind->dialect, scope->cost, &sql));
    TRY(store->kind->query(store, strbuf_text(&sql), values, QUERY_VALUES, false, out, info));
    if (scope->limit > 0 && store_table_rows(out) == scope->limit) {
        TRY(count_more(store, strbuf_text(&sql), values, out, info));
    }
    store_table_drop_needless(out);
    return ERR_OK;
}

static bool has_version(const struct store_table *versions, const char *version)
{
    for (size_t i = 0; i < store_table_rows(versions); i++) {
        if (strcmp(store_table_get(versions, i, 0).text, version) == 0) {
            return true;
        }
    }
    return false;
}

enum err store_ask(struct store *store,
                   const struct store_query *query,
                   const struct store_scope *scope,
                   const char *const *words,
                   struct store_table *out,
                   struct err_info *info)
{
    if (query->words_are_versions) {
        CLEANUP(store_table_release) struct store_table versions = {0};
        struct store_scope all = *scope;
        all.limit = 0;
        TRY(ask_number(store, &query_versions, &all, NULL, &versions, info));
        for (size_t i = 0; i < QUERY_WORDS_MAX; i++) {
            if (!has_version(&versions, words[i])) {
                return err_set(info, ERR_NOT_FOUND, "no recording has the version '%.200s'",
                               words[i]);
            }
        }
    }
    return ask_number(store, query, scope, words, out, info);
}

enum err store_select(struct store *store,
                      const char *sql,
                      uint64_t limit_ms,
                      struct store_table *out,
                      struct err_info *info)
{
    store->limit_ms = limit_ms;
    return store->kind->query(store, sql, NULL, 0, true, out, info);
}

enum err store_prune(struct store *store,
                     const struct store_scope *scope,
                     uint64_t *out_count,
                     struct err_info *info)
{
    CLEANUP(store_table_release) struct store_table table = {0};
    CLEANUP(u64_vec_release) struct u64_vec ids = {0};
    TRY(ask_number(store, &query_ids, scope, NULL, &table, info));
    const size_t count = store_table_rows(&table);
    TRY(u64_vec_resize(&ids, count));
    for (size_t i = 0; i < count; i++) {
        ids.items[i] = (uint64_t)store_table_integer(&table, i, 0);
    }
    if (count > 0) {
        TRY(store->kind->remove(store, (const int64_t *)ids.items, count, info));
    }
    *out_count = count;
    return ERR_OK;
}
