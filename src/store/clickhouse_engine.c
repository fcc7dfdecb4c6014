// SPDX-License-Identifier: MIT
// clickhouse_engine: a store in a ClickHouse server, through its HTTP interface.
//
//   http://HOST:8123/DATABASE     USER:PASSWORD is in the environment, CAIRN_STORE_LOGIN
//
// Each statement is one POST. Values become literals, in which every quote and backslash is
// escaped. Answers come as TabSeparatedWithNamesAndTypes, only after the statement has ended
// (wait_end_of_query), so a late failure is not taken for a short answer. A user's statement runs
// with readonly=1. There are no transactions: commit sends the tables in the order of enum
// store_part, each in one INSERT, and a recording counts when its row of `recordings` has arrived.
//
// The tables of a database may be Distributed tables over several servers; docs/user/store.md has
// an example. Removing works on a server's own tables. Context: H. Trust: the server is hostile, so
// its answers are bounded and checked.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "host/http/http_client.h"
#include "host/text/number.h"
#include "host/text/visible_text.h"
#include "profile/model/cost.h"
#include "store/engine.h"
#include "store/store_schema.h"

enum {
    TIMEOUT_MS = 120000,
    MESSAGE_MAX = 300, // bytes of a server's message
    STATUS_GOOD = 200,
};

// What needs no escape in the name of a database.
#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

struct clickhouse_engine {
    struct store engine;
    struct http_client *client;        // owned
    struct strbuf base;                // owned; the URL without the database
    struct strbuf database;            // owned; its name
    struct strbuf pending[PART_COUNT]; // owned; lines of an addition
};

static struct clickhouse_engine *clickhouse_of(struct store *engine)
{
    return (struct clickhouse_engine *)engine;
}

static void close_engine(struct store *engine)
{
    struct clickhouse_engine *e = clickhouse_of(engine);
    http_client_free(e->client);
    strbuf_release(&e->base);
    strbuf_release(&e->database);
    for (size_t i = 0; i < PART_COUNT; i++) {
        strbuf_release(&e->pending[i]);
    }
    free(e);
}

// --- statements ----------------------------------------------------------------------------------

static void append_escaped(struct strbuf *out, const char *text)
{
    static const char characters[] = "\\'\t\n\r";
    static const char letters[] = "\\'tnr";
    for (; *text != '\0'; text++) {
        const char *found = strchr(characters, *text);
        strbuf_append_text(out, found != NULL ? "\\" : "");
        strbuf_append(out, found != NULL ? &letters[found - characters] : text, 1);
    }
}

static void append_value(struct strbuf *out, const struct store_value *value, bool is_literal)
{
    const char *quote = is_literal ? "'" : "";
    switch (value->kind) {
    case STORE_NULL:
        strbuf_append_text(out, is_literal ? "NULL" : "\\N");
        break;
    case STORE_INTEGER:
        strbuf_append_integer(out, value->integer);
        break;
    case STORE_UNSIGNED:
        strbuf_printf(out, "%llu", (unsigned long long)value->integer);
        break;
    case STORE_REAL:
        strbuf_printf(out, "%.17g", value->real);
        break;
    case STORE_TEXT:
        strbuf_append_text(out, quote);
        append_escaped(out, value->text);
        strbuf_append_text(out, quote);
        break;
    }
}

// Append `sql` with each ?N replaced by a literal. Without values it stays as it is.
static void append_statement(struct strbuf *out,
                             const char *sql,
                             const struct store_value *values,
                             size_t count)
{
    while (*sql != '\0') {
        size_t number = 0;
        const char *at = sql + 1;
        while (*sql == '?' && *at >= '0' && *at <= '9' && number < count) {
            number = number * 10 + (size_t)(*at++ - '0');
        }
        if (number > 0 && number <= count) {
            append_value(out, &values[number - 1], true);
            sql = at;
        } else {
            strbuf_append_char(out, *sql++);
        }
    }
}

// Describe an answer that is an error: its lines as one, made safe. Of several servers the name of
// the one that does not answer is in the second line.
static enum err refuse_answer(const struct http_answer *answer, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf line = {0};
    CLEANUP(strbuf_release) struct strbuf shown = {0};
    const char *text = strbuf_text(&answer->body);
    while (*text != '\0' && line.len < MESSAGE_MAX) {
        const size_t len = strcspn(text, "\n");
        strbuf_append(&line, text, len);
        text += len;
        const size_t ends = strspn(text, "\n");
        text += ends;
        if (ends > 0 && *text != '\0') {
            strbuf_append_char(&line, ' ');
        }
    }
    strbuf_truncate(&line, MESSAGE_MAX);
    visible_append(&shown, strbuf_text(&line));
    return err_set(info, ERR_IO, "the store's server refused with HTTP status %u: %.400s",
                   answer->status, strbuf_text(&shown));
}

// Send one statement. `data` follows it, for an INSERT. `answer` may be NULL.
static MUST_USE enum err send_statement(struct clickhouse_engine *e,
                                        const char *statement,
                                        const struct strbuf *data,
                                        const char *settings,
                                        struct strbuf *answer,
                                        struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf url = {0};
    CLEANUP(http_answer_release) struct http_answer got = {0};
    strbuf_printf(&url, "%s/?wait_end_of_query=1%s&database=%s", strbuf_text(&e->base), settings,
                  strbuf_text(&e->database));
    if (data != NULL) {
        strbuf_append_text(&url, "&query=");
        http_append_escaped(&url, statement);
    }
    TRY(strbuf_result(&url));
    const struct http_request request = {
        .url = strbuf_text(&url),
        .content_type = "text/plain; charset=UTF-8",
        .body = data != NULL ? strbuf_bytes(data)
                             : (struct bytes){(const uint8_t *)statement, strlen(statement)},
    };
    struct err_info trouble = {0};
    const enum err problem = http_client_send(e->client, &request, &got, &trouble);
    if (problem != ERR_OK) {
        return err_set(info, problem, "the store's server: %s", err_text(&trouble));
    }
    if (got.is_cut) {
        return err_set(info, ERR_LIMIT, "the answer is too long: use LIMIT");
    }
    if (got.status != STATUS_GOOD) {
        return refuse_answer(&got, info);
    }
    if (answer != NULL) {
        strbuf_release(answer);
        *answer = TAKE(got.body);
    }
    return ERR_OK;
}

// --- answers -------------------------------------------------------------------------------------

// Undo the escapes of a field, in place.
static void unescape_text(char *text)
{
    static const char letters[] = "bfnrt0";
    static const char characters[] = "\b\f\n\r\t ";

    char *to = text;
    for (; *text != '\0'; text++) {
        const char *from = text;
        if (*text == '\\' && text[1] != '\0') {
            const char *found = strchr(letters, *++text);
            from = found != NULL ? &characters[found - letters] : text;
        }
        *to++ = *from;
    }
    *to = '\0';
}

// Cut the next line off *at. False at the end.
static bool next_line(char **at, char **out)
{
    if (**at == '\0') {
        return false;
    }
    *out = *at;
    char *end = *at + strcspn(*at, "\n");
    *at = *end != '\0' ? end + 1 : end;
    *end = '\0';
    return true;
}

// The same for the fields of a line. *line is NULL after the last.
static char *next_field(char **line)
{
    char *field = *line;
    char *end = field + strcspn(field, "\t");
    *line = *end != '\0' ? end + 1 : NULL;
    *end = '\0';
    return field;
}

static enum store_kind kind_of_type(const char *type)
{
    const char *inner = strncmp(type, "Nullable(", 9) == 0 ? type + 9 : type;
    if (strncmp(inner, "Int", 3) == 0 || strncmp(inner, "UInt", 4) == 0) {
        return STORE_INTEGER;
    }
    return strncmp(inner, "Float", 5) == 0 ? STORE_REAL : STORE_TEXT;
}

static MUST_USE enum err add_field(struct store_table *out, enum store_kind kind, char *field)
{
    struct store_value value = {.kind = kind};
    char *end = field;
    if (strcmp(field, "\\N") == 0) {
        value.kind = STORE_NULL;
        return store_table_add(out, &value, 0);
    }
    switch (kind) {
    case STORE_NULL:
    case STORE_TEXT:
        unescape_text(field);
        value = store_text(field);
        return store_table_add(out, &value, strlen(field));
    case STORE_UNSIGNED: // no column's kind
    case STORE_INTEGER: {
        const bool is_negative = field[0] == '-';
        const char *digits = field + is_negative;
        uint64_t number = 0;
        if (!number_take(&digits, 10, &number) || *digits != '\0') {
            return ERR_CORRUPT;
        }
        value.kind = !is_negative && number > INT64_MAX ? STORE_UNSIGNED : STORE_INTEGER;
        value.integer = (int64_t)(is_negative ? 0 - number : number);
        return store_table_add(out, &value, 0);
    }
    case STORE_REAL:
        value.real = strtod(field, &end);
        break;
    }
    return end != field && *end == '\0' ? store_table_add(out, &value, 0) : ERR_CORRUPT;
}

// Parse an answer: a line of names, a line of types, and the rows.
static MUST_USE enum err parse_table(char *text, struct store_table *out)
{
    enum store_kind kinds[STORE_COLUMNS_MAX];
    char *line = NULL;
    size_t columns = 0;
    if (!next_line(&text, &line)) {
        return ERR_OK; // of a statement without an answer
    }
    while (line != NULL) {
        char *name = next_field(&line);
        unescape_text(name);
        TRY(store_table_add_column(out, name));
    }
    if (!next_line(&text, &line)) {
        return ERR_CORRUPT;
    }
    while (line != NULL && columns < out->names.len) {
        kinds[columns++] = kind_of_type(next_field(&line));
    }
    if (columns != out->names.len || line != NULL) {
        return ERR_CORRUPT;
    }
    while (next_line(&text, &line)) {
        for (size_t i = 0; i < columns; i++) {
            if (line == NULL) {
                return ERR_CORRUPT;
            }
            TRY(add_field(out, kinds[i], next_field(&line)));
        }
        if (line != NULL) {
            return ERR_CORRUPT;
        }
    }
    return ERR_OK;
}

static enum err clickhouse_query(struct store *engine,
                                 const char *sql,
                                 const struct store_value *values,
                                 size_t count,
                                 bool is_foreign,
                                 struct store_table *out,
                                 struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf statement = {0};
    CLEANUP(strbuf_release) struct strbuf answer = {0};
    append_statement(&statement, sql, values, count);
    while (statement.len > 0 && strchr("; \t\r\n", statement.data[statement.len - 1]) != NULL) {
        strbuf_truncate(&statement, statement.len - 1);
    }
    strbuf_append_text(&statement, "\nFORMAT TabSeparatedWithNamesAndTypes");
    TRY(strbuf_result(&statement));
    TRY(send_statement(clickhouse_of(engine), strbuf_text(&statement), NULL,
                       is_foreign ? "&readonly=1" : "", &answer, info));
    strbuf_append_char(&answer, '\0'); // data is not NULL then
    const enum err problem =
        strbuf_result(&answer) == ERR_OK ? parse_table(answer.data, out) : ERR_NO_MEMORY;
    switch (problem) {
    case ERR_OK:
        return ERR_OK;
    case ERR_LIMIT:
        return err_set(info, problem, "the answer is too long: use LIMIT");
    case ERR_NO_MEMORY:
        return problem;
    default:
        return err_set(info, ERR_CORRUPT, "the store's server does not answer as ClickHouse does");
    }
}

// --- additions -----------------------------------------------------------------------------------

static void clickhouse_abandon(struct store *engine)
{
    for (size_t i = 0; i < PART_COUNT; i++) {
        strbuf_clear(&clickhouse_of(engine)->pending[i]);
    }
}

static enum err clickhouse_begin(struct store *engine, struct err_info *info)
{
    (void)info;
    clickhouse_abandon(engine);
    return ERR_OK;
}

static enum err clickhouse_put(struct store *engine,
                               enum store_part part,
                               const struct store_value *values,
                               size_t count,
                               struct err_info *info)
{
    (void)info;
    struct strbuf *lines = &clickhouse_of(engine)->pending[part];
    for (size_t i = 0; i < count; i++) {
        strbuf_append_text(lines, i > 0 ? "\t" : "");
        append_value(lines, &values[i], false);
    }
    strbuf_append_char(lines, '\n');
    return strbuf_result(lines);
}

static enum err clickhouse_commit(struct store *engine, struct err_info *info)
{
    struct clickhouse_engine *e = clickhouse_of(engine);
    for (size_t i = 0; i < PART_COUNT; i++) {
        if (e->pending[i].len > 0) {
            TRY(send_statement(e, clickhouse_dialect.insert[i], &e->pending[i],
                               "&insert_distributed_sync=1", NULL, info));
        }
    }
    clickhouse_abandon(engine);
    return ERR_OK;
}

static enum err clickhouse_run(struct store *engine, const char *sql, struct err_info *info)
{
    return send_statement(clickhouse_of(engine), sql, NULL, "", NULL, info);
}

static enum err
remove_recordings(struct store *engine, const int64_t *ids, size_t count, struct err_info *info)
{
    static const char *const tables[] = {"recordings", "rows"};
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        CLEANUP(strbuf_release) struct strbuf statement = {0};
        strbuf_printf(&statement, "ALTER TABLE %s DELETE WHERE recording_id IN (", tables[t]);
        for (size_t i = 0; i < count; i++) {
            strbuf_printf(&statement, "%s%lld", i > 0 ? "," : "", (long long)ids[i]);
        }
        strbuf_append_char(&statement, ')');
        TRY(strbuf_result(&statement));
        TRY(clickhouse_run(engine, strbuf_text(&statement), info));
    }
    return ERR_OK;
}

// --- opening -------------------------------------------------------------------------------------

// Count the rows of a table of the system that are of this database.
static MUST_USE enum err count_in_system(struct clickhouse_engine *e,
                                         const char *condition,
                                         int64_t *out,
                                         struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf sql = {0};
    strbuf_printf(&sql, "SELECT count() FROM system.%s", condition);
    TRY(strbuf_result(&sql));
    return engine_number(&e->engine, strbuf_text(&sql), store_text(strbuf_text(&e->database)), out,
                         info);
}

static const char *name_in_version_1(enum cost cost)
{
    return cost == COST_LEAKED_BYTES         ? "leaked_bytes"
           : cost == COST_LEAKED_ALLOCATIONS ? "leaked_allocations"
                                             : cost_get_info(cost)->key;
}

// Make the costs NULL that the recordings do not know, in tables of version 1. The server
// does it in its own time, and its mutations know no current database.
static MUST_USE enum err forget_unknown(struct clickhouse_engine *e, struct err_info *info)
{
    static const char *const tables[] = {"recordings", "rows"};
    const char *database = strbuf_text(&e->database);
    int64_t count = 0;
    TRY(engine_number(&e->engine, "SELECT count() FROM recordings WHERE unknown<>''",
                      (struct store_value){0}, &count, info));
    for (size_t t = 0; t < ARRAY_LEN(tables) && count > 0; t++) {
        for (int cost = 0; cost < COST_COUNT; cost++) {
            CLEANUP(strbuf_release) struct strbuf sql = {0};
            const char *key = name_in_version_1((enum cost)cost);
            strbuf_printf(&sql,
                          "ALTER TABLE %s UPDATE %s=NULL WHERE recording_id IN (SELECT recording_id"
                          " FROM %s.recordings WHERE unknown LIKE '%%,%s,%%')",
                          tables[t], key, database, key);
            TRY(strbuf_result(&sql));
            TRY(clickhouse_run(&e->engine, strbuf_text(&sql), info));
        }
    }
    return ERR_OK;
}

// Give the tables what this version has, if they lack it. *version is the newest of all servers; it
// does not tell of these tables, since those of other servers, Distributed tables over them, and an
// upgrade that was cut short have the column or the mark alone.
static MUST_USE enum err
upgrade_schema(struct clickhouse_engine *e, int64_t *version, struct err_info *info)
{
    int64_t columns = 0;
    int64_t plain = 0;
    int64_t live = 0;
    int64_t runs = 0;
    int64_t distributed = 0;
    TRY(count_in_system(
        e, "columns WHERE database=?1 AND table='recordings' AND name='interval_bytes'", &columns,
        info));
    TRY(count_in_system(e,
                        "columns WHERE database=?1 AND table='rows' AND name='own_peak_bytes'"
                        " AND type='Int64'",
                        &plain, info));
    TRY(count_in_system(e, "columns WHERE database=?1 AND table='rows' AND name='live_blocks'",
                        &live, info));
    TRY(count_in_system(e, "columns WHERE database=?1 AND table='recordings' AND name='run_order'",
                        &runs, info));
    if (*version == 1) {
        TRY(count_in_system(
            e, "tables WHERE database=?1 AND name='recordings' AND engine='Distributed'",
            &distributed, info));
    }
    if (distributed > 0) {
        return err_set(info, ERR_UNSUPPORTED,
                       "the tables of '%.100s' are Distributed: first open the database of each "
                       "server with this cairn, which changes columns",
                       strbuf_text(&e->database));
    }
    TRY(columns > 0 ? ERR_OK : engine_run_all(&e->engine, clickhouse_dialect.add_interval, info));
    TRY(plain == 0 ? ERR_OK : engine_run_all(&e->engine, clickhouse_dialect.add_unknown, info));
    TRY(*version == 1 ? forget_unknown(e, info) : ERR_OK);
    TRY(live > 0 ? ERR_OK : engine_run_all(&e->engine, clickhouse_dialect.add_live, info));
    TRY(runs > 0 ? ERR_OK : engine_run_all(&e->engine, clickhouse_dialect.add_runs, info));
    if (*version == 1) {
        TRY(engine_run_all(&e->engine, clickhouse_dialect.rename_unknown, info));
        TRY(clickhouse_run(&e->engine, CLICKHOUSE_MARK, info));
    }
    *version = STORE_VERSION;
    return ERR_OK;
}

static MUST_USE enum err
check_schema(struct clickhouse_engine *e, bool creates, struct err_info *info)
{
    int64_t tables = 0;
    int64_t version = 0;
    const struct store_value database = store_text(strbuf_text(&e->database));
    TRY(count_in_system(e, "tables WHERE database=?1 AND name='cairn_store'", &tables, info));
    if (tables == 0 && !creates) {
        return err_set(info, ERR_UNSUPPORTED,
                       "the database '%.100s' is not a store of cairn, or it is empty",
                       strbuf_text(&e->database));
    }
    if (tables == 0) {
        TRY(engine_run_all(&e->engine, clickhouse_dialect.schema, info));
    }
    TRY(engine_number(&e->engine, "SELECT max(version) FROM cairn_store", database, &version,
                      info));
    if (version == 1 || version == STORE_VERSION) {
        TRY(upgrade_schema(e, &version, info));
    }
    return version == STORE_VERSION
               ? ERR_OK
               : err_set(info, ERR_UNSUPPORTED,
                         "the store has version %lld, and this cairn reads version %d",
                         (long long)version, STORE_VERSION);
}

// Split an URL into the server and the database, whose name may have letters, digits and _.
static MUST_USE enum err
split_url(struct clickhouse_engine *e, const char *url, struct err_info *info)
{
    const char *host = strstr(url, "://");
    const char *path = host != NULL ? strchr(host + strlen("://"), '/') : NULL;
    const size_t len = path != NULL ? (size_t)(path - url) : strlen(url);
    const char *name = path != NULL && path[1] != '\0' ? path + 1 : "cairn";
    if (name[strspn(name, PLAIN)] != '\0') {
        return err_set(info, ERR_INVALID,
                       "the name of a database has letters, digits and _ only: '%.100s'", name);
    }
    strbuf_append(&e->base, url, len);
    strbuf_append_text(&e->database, name);
    TRY(strbuf_result(&e->base));
    return strbuf_result(&e->database);
}

static MUST_USE enum err
open_url(struct clickhouse_engine *e, const char *url, bool creates, struct err_info *info)
{
    const struct http_client_options options = {.credentials = getenv("CAIRN_STORE_LOGIN"),
                                                .timeout_ms = TIMEOUT_MS,
                                                .body_max_bytes = STORE_TEXTS_MAX};
    TRY(split_url(e, url, info));
    TRY(http_client_check_url(strbuf_text(&e->base), options.credentials != NULL, "--store", info));
    TRY(http_client_new(&options, &e->client, info));
    return check_schema(e, creates, info);
}

static const struct engine_kind clickhouse_kind = {
    .dialect = &clickhouse_dialect,
    .close = close_engine,
    .query = clickhouse_query,
    .run = clickhouse_run,
    .begin = clickhouse_begin,
    .put = clickhouse_put,
    .commit = clickhouse_commit,
    .abandon = clickhouse_abandon,
    .remove = remove_recordings,
};

enum err
clickhouse_engine_open(const char *url, bool creates, struct store **out, struct err_info *info)
{
    struct clickhouse_engine *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return ERR_NO_MEMORY;
    }
    e->engine.kind = &clickhouse_kind;
    return engine_finish_open(&e->engine, open_url(e, url, creates, info), out);
}
