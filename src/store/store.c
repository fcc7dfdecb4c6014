// SPDX-License-Identifier: MIT
// store: see store.h.
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/json_writer.h"
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

bool store_label_is_name(const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    return text[0] != '\0' && text[strspn(text, plain)] == '\0';
}

// Tell for which ids a table has rows.
static MUST_USE enum err find_ids(struct store *store,
                                  const char *table,
                                  const int64_t *ids,
                                  size_t count,
                                  bool *out,
                                  struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf sql = {0};
    CLEANUP(store_table_release) struct store_table found = {0};
    memset(out, 0, count * sizeof(*out));
    strbuf_printf(&sql, "SELECT DISTINCT recording_id FROM %s WHERE recording_id IN (0", table);
    for (size_t i = 0; i < count; i++) {
        strbuf_append_char(&sql, ',');
        strbuf_append_integer(&sql, ids[i]);
    }
    strbuf_append_char(&sql, ')');
    TRY(strbuf_result(&sql));
    TRY(store->kind->query(store, strbuf_text(&sql), NULL, 0, false, &found, info));
    for (size_t row = 0; row < store_table_rows(&found); row++) {
        const int64_t id = store_table_integer(&found, row, 0);
        for (size_t i = 0; i < count; i++) {
            out[i] |= ids[i] == id;
        }
    }
    return ERR_OK;
}

enum err store_find_known(
    struct store *store, const int64_t *ids, size_t count, bool *out_known, struct err_info *info)
{
    return find_ids(store, "recordings", ids, count, out_known, info);
}

static bool has_earlier(const int64_t *ids, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (ids[i] == ids[at]) {
            return true;
        }
    }
    return false;
}

// Put the recordings that the store has not. `ids` and `has_costs` are scratch.
static MUST_USE enum err put_new(struct store *store,
                                 const struct recording_rows *const *recordings,
                                 size_t count,
                                 int64_t *ids,
                                 bool *has_costs,
                                 bool *out_is_new,
                                 struct err_info *info)
{
    CLEANUP(rows_seen_release) struct rows_seen seen = {0};
    for (size_t i = 0; i < count; i++) {
        ids[i] = recordings[i]->id;
    }
    TRY(find_ids(store, "recordings", ids, count, out_is_new, info));
    // A server that failed between two tables has the rows already.
    TRY(find_ids(store, "rows", ids, count, has_costs, info));
    for (size_t i = 0; i < count; i++) {
        out_is_new[i] = !out_is_new[i] && !has_earlier(ids, i);
        if (out_is_new[i]) {
            TRY(recording_rows_put(recordings[i], has_costs[i], &seen, store, info));
        }
    }
    return store->kind->commit(store, info);
}

static void bools_freep(bool **bools)
{
    free(*bools);
}

enum err store_add(struct store *store,
                   const struct recording_rows *const *recordings,
                   size_t count,
                   bool *out_is_new,
                   struct err_info *info)
{
    CLEANUP(u64_vec_release) struct u64_vec ids = {0};
    CLEANUP(bools_freep) bool *has_costs = calloc(count > 0 ? count : 1, sizeof(*has_costs));
    TRY(u64_vec_resize(&ids, count));
    if (has_costs == NULL) {
        return ERR_NO_MEMORY;
    }
    TRY(store->kind->begin(store, info));
    const enum err problem =
        put_new(store, recordings, count, (int64_t *)ids.items, has_costs, out_is_new, info);
    if (problem != ERR_OK) {
        store->kind->abandon(store);
    }
    return problem;
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

// The two texts of a label, as they are in the labels of a recording: at their start, and behind
// another label.
static MUST_USE enum err write_label(const struct store_label *label, struct strbuf texts[2])
{
    CLEANUP(strbuf_release) struct strbuf object = {0};
    struct json_writer w;
    json_to_strbuf(&w, &object, JSON_COMPACT);
    json_key_string(&w, label->name, label->value);
    TRY(json_finish(&w));
    const size_t len = object.len > 0 ? object.len - 1 : 0; // without what closes the object
    strbuf_append(&texts[0], strbuf_text(&object), len);
    strbuf_append_text(&texts[1], "\",");
    strbuf_append(&texts[1], strbuf_text(&object) + 1, len - 1);
    TRY(strbuf_result(&texts[0]));
    return strbuf_result(&texts[1]);
}

// Texts of labels.
struct label_texts {
    struct strbuf texts[2 * QUERY_LABELS_MAX]; // owned
};

static void label_texts_release(struct label_texts *labels)
{
    for (size_t i = 0; i < ARRAY_LEN(labels->texts); i++) {
        strbuf_release(&labels->texts[i]);
    }
}

static MUST_USE enum err ask_number(struct store *store,
                                    const struct store_query *query,
                                    const struct store_scope *scope,
                                    const char *const *words,
                                    struct store_table *out,
                                    struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf sql = {0};
    CLEANUP(label_texts_release) struct label_texts labels = {0};
    char unknown[64];
    const struct query_form form = {.cost = scope->cost,
                                    .label_count = scope->label_count,
                                    .has_all_states = scope->has_all_states,
                                    .is_per_second = scope->is_per_second};
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
    for (size_t i = 0; i < scope->label_count; i++) {
        TRY(write_label(&scope->labels[i], &labels.texts[2 * i]));
        values[QUERY_LABELS + 2 * i] = store_text(strbuf_text(&labels.texts[2 * i]));
        values[QUERY_LABELS + 2 * i + 1] = store_text(strbuf_text(&labels.texts[2 * i + 1]));
    }
    TRY(store_query_render(query, store->kind->dialect, &form, &sql));
    TRY(store->kind->query(store, strbuf_text(&sql), values, QUERY_VALUES, false, out, info));
    if (scope->limit > 0 && store_table_rows(out) == scope->limit) {
        TRY(count_more(store, strbuf_text(&sql), values, out, info));
    }
    store_table_drop_needless(out);
    return ERR_OK;
}

static MUST_USE enum err has_version(struct store *store,
                                     const struct store_scope *scope,
                                     const char *version,
                                     bool *out,
                                     struct err_info *info)
{
    CLEANUP(store_table_release) struct store_table versions = {0};
    struct store_scope all = *scope;
    all.limit = 0;
    TRY(ask_number(store, &query_versions, &all, NULL, &versions, info));
    *out = false;
    for (size_t i = 0; i < store_table_rows(&versions); i++) {
        *out |= strcmp(store_table_get(&versions, i, 0).text, version) == 0;
    }
    return ERR_OK;
}

static MUST_USE enum err require_version(struct store *store,
                                         const struct store_scope *scope,
                                         const char *version,
                                         struct err_info *info)
{
    struct store_scope all = *scope;
    bool is_there = false;
    TRY(has_version(store, scope, version, &is_there, info));
    if (is_there) {
        return ERR_OK;
    }
    all.has_all_states = true;
    TRY(has_version(store, &all, version, &is_there, info));
    return is_there
               ? err_set(info, ERR_NOT_FOUND,
                         "the recordings of the version '%.200s' are earlier states of runs whose "
                         "last states have other versions; --states compares them",
                         version)
               : err_set(info, ERR_NOT_FOUND, "no recording has the version '%.200s'", version);
}

enum err store_ask(struct store *store,
                   const struct store_query *query,
                   const struct store_scope *scope,
                   const char *const *words,
                   struct store_table *out,
                   struct err_info *info)
{
    for (size_t i = 0; query->words_are_versions && i < QUERY_WORDS_MAX; i++) {
        TRY(require_version(store, scope, words[i], info));
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
                     const struct retention_policy *policy,
                     int64_t now_s,
                     uint64_t *out_count,
                     struct err_info *info)
{
    static const struct retention_policy none = {0};
    CLEANUP(store_table_release) struct store_table ages = {0};
    CLEANUP(u64_vec_release) struct u64_vec ids = {0};
    struct store_scope all = *scope;
    all.has_all_states = true;
    TRY(ask_number(store, &query_ages, &all, NULL, &ages, info));
    TRY(retention_select(policy != NULL ? policy : &none, &ages, now_s, &ids));
    if (ids.len > 0) {
        TRY(store->kind->remove(store, (const int64_t *)ids.items, ids.len, info));
    }
    *out_count = ids.len;
    return ERR_OK;
}
