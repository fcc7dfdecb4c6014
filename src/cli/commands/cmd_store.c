// SPDX-License-Identifier: MIT
// cmd_store: `cairn store ACTION`: adds recordings to a store and asks it.
//
// Each action is a row of a table: its name, its operands and its function. All of them share the
// options of the scope. Context: H.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/options/name_options.h"
#include "cli/options/output_words.h"
#include "cli/store/add_recordings.h"
#include "cli/store/serve_store.h"
#include "cli/store/store_options.h"
#include "cli/store/table_output.h"
#include "host/text/format.h"
#include "host/text/json_writer.h"
#include "store/store.h"
#include "store/store_schema.h"

enum {
    ROWS_BY_DEFAULT = 20, // in text and JSON
    QUERY_LIMIT_MS = 60000,
};

struct store_fields {
    const char *place;
    const char *service;
    const char *version;
    const char *host;
    const char *since;
    const char *until;
    const char *recording;
    const char *cluster;
    struct option_word_vec labels;
    enum cost cost;
    uint32_t limit;
    uint64_t limit_ms;
    bool use_json;
    bool use_csv;
    bool is_oom;
    bool has_all_states;
    const char *per;
    const char *policy;
    const char *address;
    const char *tls_file;
    const char *read_token_file;
    const char *add_token_file;
    const char *admin_token_file;
    struct name_words names;
};

static const char *const per_choices[] = {"second", NULL};
static const struct store_fields defaults = {.limit = OUTPUT_UNSET, .limit_ms = QUERY_LIMIT_MS};

#define FIELD(field) offsetof(struct store_fields, field)

// clang-format off
static const struct option_spec specs[] = {
    OPTION(0, "store", NAME, "URL", FIELD(place),
           "the store: a path, or http://HOST:PORT/DATABASE of a ClickHouse server (default: "
           "$CAIRN_STORE, or ~/.local/share/cairn/store.db)"),
    OPTION(0, "service", TEXT, "NAME", FIELD(service),
           "only recordings of this service; for add: its name (default: the program's)"),
    OPTION(0, "version", TEXT, "TEXT", FIELD(version),
           "only this version; for add: the version (default: the program's build-id)"),
    OPTION(0, "host", TEXT, "NAME", FIELD(host),
           "only this host; for add: the host (default: the recorded one)"),
    OPTION(0, "since", TEXT, "TIME", FIELD(since),
           "only recordings that began at or after TIME: 2026-01-31, a Unix time such as "
           "@1790000000, or an age such as 7d"),
    OPTION(0, "until", TEXT, "TIME", FIELD(until), "only recordings that began before TIME"),
    OPTION(0, "recording", TEXT, "ID", FIELD(recording),
           "only this recording, by its recording_id in the list"),
    OPTION(0, "label", EACH, "NAME=VALUE", FIELD(labels),
           "only recordings with this label; for add: a label of theirs; repeatable"),
    OPTION(0, "states", FLAG, NULL, FIELD(has_all_states),
           "all states of a run that --rotate kept (default: the last of each run)"),
    OPTION(0, "per", CHOICE, "second", FIELD(per),
           "for growth, diff, hosts and history: costs by the seconds that each recording lasted",
           .choices = per_choices),
    OPTION(0, "policy", TEXT, "AGES", FIELD(policy),
           "for prune and serve: what to keep: 7d,30d/1d,365d/7d is all of 7 days, one a day of 30 "
           "days, and one in 7 days of a year"),
    OPTION(0, "listen", NAME, "ADDRESS", FIELD(address),
           "for serve: HOST:PORT or the path of a socket (default: 127.0.0.1:9470)"),
    OPTION(0, "tls", NAME, "FILE", FIELD(tls_file),
           "for serve: certificate and key as PEM"),
    OPTION(0, "read-token", NAME, "FILE", FIELD(read_token_file),
           "for serve: the token of those who read; the file is made if it does not exist"),
    OPTION(0, "add-token", NAME, "FILE", FIELD(add_token_file),
           "for serve: the token of those who add recordings"),
    OPTION(0, "admin-token", NAME, "FILE", FIELD(admin_token_file),
           "for serve: the token of the administrator, who may do all (default: one that is drawn "
           "and printed)"),
    OPTION(0, "cluster", TEXT, "NAME", FIELD(cluster),
           "for schema: a cluster of several servers, as their configuration names it"),
    OPTION(0, "oom", FLAG, NULL, FIELD(is_oom),
           "for add: memory ran out at the end (default: if SIGKILL ended the program)"),
    OPTION(0, "cost", COST, "COST", FIELD(cost),
           "the compared cost: " COST_OPTION_NAMES " (default: peak)"),
    OPTION('n', "limit", COUNT, "N", FIELD(limit),
           "maximum lines; 0: all (default: 20; all with --csv)"),
    OPTION(0, "time-limit", DURATION_MS, "TIME", FIELD(limit_ms),
           "for query SELECT: the most that it takes; 0: no limit (default: 1m)"),
    OPTION(0, "json", FLAG, NULL, FIELD(use_json), "write JSON (docs/format/json.md)"),
    OPTION(0, "csv", FLAG, NULL, FIELD(use_csv), "write CSV"),
};
// clang-format on

// --- the scope -----------------------------------------------------------------------------------

static MUST_USE enum err
scope_of(const struct store_fields *fields, struct store_scope *out, struct err_info *info)
{
    struct store_scope scope = {.service = fields->service,
                                .version = fields->version,
                                .host = fields->host,
                                .has_all_states = fields->has_all_states,
                                .is_per_second = fields->per != NULL,
                                .cost = fields->cost,
                                .limit = fields->limit};
    if (fields->limit == OUTPUT_UNSET) {
        scope.limit = fields->use_csv ? 0 : ROWS_BY_DEFAULT;
    }
    if (fields->since != NULL) {
        TRY(store_time_parse("since", fields->since, &scope.since, info));
    }
    if (fields->until != NULL) {
        TRY(store_time_parse("until", fields->until, &scope.until, info));
    }
    if (fields->recording != NULL && !store_parse_id(fields->recording, &scope.recording_id)) {
        return err_set(info, ERR_INVALID,
                       "--recording: '%.100s' is not a recording_id of `cairn store list`",
                       fields->recording);
    }
    *out = scope;
    return ERR_OK;
}

// --- actions -------------------------------------------------------------------------------------

struct call {
    const struct store_fields *fields;
    struct store_scope scope;
    const char *json_labels; // of the added recordings
    char **words;            // operands after the action's name
    int count;
};

// Labels as they were given, apart. Valid when zeroed.
struct label_list {
    struct store_label items[QUERY_LABELS_MAX];
    struct strbuf names[QUERY_LABELS_MAX]; // owned
    size_t count;
};

static void label_list_release(struct label_list *labels)
{
    for (size_t i = 0; i < labels->count; i++) {
        strbuf_release(&labels->names[i]);
    }
}

static MUST_USE enum err
split_labels(const struct option_word_vec *words, struct label_list *out, struct err_info *info)
{
    if (words->len > QUERY_LABELS_MAX) {
        return err_set(info, ERR_LIMIT, "--label: at most %d labels", QUERY_LABELS_MAX);
    }
    for (size_t i = 0; i < words->len; i++) {
        const char *text = words->items[i].text;
        const char *equals = strchr(text, '=');
        struct strbuf *name = &out->names[out->count++];
        strbuf_append(name, text, equals != NULL ? (size_t)(equals - text) : 0);
        TRY(strbuf_result(name));
        if (equals == NULL || !store_label_is_name(strbuf_text(name))) {
            return err_set(info, ERR_INVALID,
                           "--label: '%.100s' is not NAME=VALUE, with letters, digits and _-./ in "
                           "the name",
                           text);
        }
        out->items[i] = (struct store_label){strbuf_text(name), equals + 1};
    }
    return ERR_OK;
}

static MUST_USE enum err write_labels(const struct label_list *labels, struct strbuf *out)
{
    struct json_writer w;
    json_to_strbuf(&w, out, JSON_COMPACT);
    for (size_t i = 0; i < labels->count; i++) {
        json_key_string(&w, labels->items[i].name, labels->items[i].value);
    }
    return json_finish(&w);
}

static MUST_USE enum err
add_files(struct store *store, const struct call *call, struct err_info *info)
{
    CLEANUP(name_places_release) struct name_places names = {0};
    struct add_counts counts = {0};
    TRY(name_places_init(&names, &call->fields->names, info));
    const struct store_labels labels = {.service = call->fields->service,
                                        .version = call->fields->version,
                                        .host = call->fields->host,
                                        .labels = call->json_labels,
                                        .is_oom = call->fields->is_oom};
    TRY(add_recordings(store, call->words, call->count, &names.sources, &labels, &counts, info));
    (void)printf("%" PRIu64 " added", counts.added);
    if (counts.known > 0) {
        (void)printf(", %" PRIu64 " already in the store", counts.known);
    }
    (void)puts("");
    return ERR_OK;
}

static MUST_USE enum err show_table(const struct call *call, const struct store_table *table)
{
    const enum table_form form = call->fields->use_json  ? TABLE_JSON
                                 : call->fields->use_csv ? TABLE_CSV
                                                         : TABLE_TEXT;
    const enum err problem = table_write(table, form, stdout);
    if (form == TABLE_CSV && table->more > 0) {
        // The table has no place for it.
        (void)fprintf(stderr, "cairn: %s more rows; --limit 0 writes all\n",
                      format_count(table->more).text);
    }
    // command_finish_output has a sentence for a stream that cannot be written to.
    return problem == ERR_IO ? ERR_OK : problem;
}

// Say so if the compared recordings did not last equally long. Two states of one run (--rotate)
// differ for the time that passed between them, and so do a young and an old process.
static MUST_USE enum err compare_times(struct store *store,
                                       const struct call *call,
                                       char *const *words,
                                       struct err_info *info)
{
    enum {
        MOST_PERCENT = 110,
    };
    static const char *const all[] = {"", ""};
    CLEANUP(store_table_release) struct store_table table = {0};
    if (call->scope.is_per_second) {
        return ERR_OK;
    }
    const char *const *versions = words != NULL ? (const char *const *)words : all;
    TRY(store_ask(store, &query_lasted, &call->scope, versions, &table, info));
    if (store_table_rows(&table) == 0) {
        return ERR_OK;
    }
    const uint64_t least_ms = (uint64_t)store_table_integer(&table, 0, 0);
    const uint64_t most_ms = (uint64_t)store_table_integer(&table, 0, 1);
    if (most_ms / MOST_PERCENT > least_ms / 100) {
        (void)fprintf(stderr,
                      "cairn: the compared recordings lasted from %s to %s: figures that grow with "
                      "the time differ for that alone (--per second divides by it)\n",
                      format_duration(least_ms * NS_PER_MS).text,
                      format_duration(most_ms * NS_PER_MS).text);
    }
    return ERR_OK;
}

static MUST_USE enum err ask_store(struct store *store,
                                   const struct store_query *query,
                                   const struct call *call,
                                   char *const *words,
                                   struct err_info *info)
{
    CLEANUP(store_table_release) struct store_table table = {0};
    if (query->compares) {
        TRY(compare_times(store, call, query->words_are_versions ? words : NULL, info));
    }
    TRY(store_ask(store, query, &call->scope, (const char *const *)words, &table, info));
    return show_table(call, &table);
}

static MUST_USE enum err
run_query(struct store *store, const struct call *call, struct err_info *info)
{
    CLEANUP(store_table_release) struct store_table table = {0};
    const struct store_query *query = store_query_find(call->words[0]);
    int needed = 0;
    if (query != NULL) {
        while (needed < QUERY_WORDS_MAX && query->words[needed] != NULL) {
            needed++;
        }
    }
    if (call->count != 1 + needed) {
        return err_set(info, ERR_UNSUPPORTED, "query %s takes %s", call->words[0],
                       format_things((uint64_t)needed, "more word", "more words").text);
    }
    if (query != NULL) {
        return ask_store(store, query, call, call->words + 1, info);
    }
    TRY(store_select(store, call->words[0], call->fields->limit_ms, &table, info));
    return show_table(call, &table);
}

static MUST_USE enum err
prune_store(struct store *store, const struct call *call, struct err_info *info)
{
    const struct store_fields *fields = call->fields;
    struct store_scope scope = call->scope;
    struct retention_policy policy = {0};
    uint64_t count = 0;
    if (fields->policy != NULL) {
        TRY(store_policy_parse(fields->policy, &policy, info));
    }
    if (fields->service == NULL && fields->version == NULL && fields->host == NULL &&
        fields->since == NULL && fields->until == NULL && fields->recording == NULL &&
        fields->labels.len == 0 && fields->policy == NULL) {
        return err_set(
            info, ERR_UNSUPPORTED,
            "prune needs an option that says which recordings, such as --until 30d or --policy "
            "7d,30d/1d");
    }
    scope.limit = 0;
    scope.is_any_cost = true;
    TRY(store_prune(store, &scope, fields->policy != NULL ? &policy : NULL, time(NULL), &count,
                    info));
    (void)printf("%" PRIu64 " removed\n", count);
    return ERR_OK;
}

static MUST_USE enum err
run_server(struct store *store, const struct call *call, struct err_info *info)
{
    CLEANUP(name_places_release) struct name_places names = {0};
    const struct store_fields *fields = call->fields;
    struct retention_policy policy = {0};
    (void)store;
    if (fields->policy != NULL) {
        TRY(store_policy_parse(fields->policy, &policy, info));
    }
    TRY(name_places_init(&names, &fields->names, info));
    const struct serve_settings settings = {.place = fields->place,
                                            .address = fields->address,
                                            .tls_file = fields->tls_file,
                                            .read_token_file = fields->read_token_file,
                                            .add_token_file = fields->add_token_file,
                                            .admin_token_file = fields->admin_token_file,
                                            .policy = fields->policy != NULL ? &policy : NULL,
                                            .names = &names.sources};
    return serve_store(&settings, info);
}

// Print the statements that make the tables. There may be no store yet.
static MUST_USE enum err
print_schema(struct store *store, const struct call *call, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf statements = {0};
    (void)store;
    TRY(store_schema_write(call->fields->cluster, &statements, info));
    (void)fputs(strbuf_text(&statements), stdout); // command_end checks the stream
    return ERR_OK;
}

static const struct action {
    const char *name;
    int words_min;
    int words_max;
    const char *needs; // for messages
    bool creates;
    bool needs_none;                 // no store is opened
    const struct store_query *query; // NULL: `run`
    enum err (*run)(struct store *store, const struct call *call, struct err_info *info);
} actions[] = {
    {"add", 1, INT32_MAX, "FILE...", true, false, NULL, add_files},
    {"list", 0, 0, "no operand", false, false, &query_list, NULL},
    {"top", 0, 0, "no operand", false, false, &query_top, NULL},
    {"diff", 2, 2, "two versions: OLD and NEW", false, false, &query_diff, NULL},
    {"query", 1, 1 + QUERY_WORDS_MAX, "growth, hosts, history, oom or a SELECT", false, false, NULL,
     run_query},
    {"prune", 0, 0, "no operand", false, false, NULL, prune_store},
    {"schema", 0, 0, "no operand", false, true, NULL, print_schema},
    {"serve", 0, 0, "no operand", false, true, NULL, run_server},
};

// Find the action and check the number of its operands.
static MUST_USE enum err find_action(const struct call *call,
                                     const char *name,
                                     const struct action **out,
                                     struct err_info *info)
{
    for (size_t i = 0; i < ARRAY_LEN(actions) && name != NULL; i++) {
        const struct action *action = &actions[i];
        if (strcmp(action->name, name) == 0) {
            if (call->count < action->words_min || call->count > action->words_max) {
                return err_set(info, ERR_INVALID, "%s takes %s", name, action->needs);
            }
            *out = action;
            return ERR_OK;
        }
    }
    return err_set(info, ERR_INVALID,
                   "the action must be add, list, top, diff, query, prune, schema or serve");
}

static MUST_USE enum err
run_action(const struct action *action, const struct call *call, struct err_info *info)
{
    CLEANUP(store_closep) struct store *store = NULL;
    if (action->needs_none) {
        return action->run(NULL, call, info);
    }
    TRY(store_open(call->fields->place, action->creates, &store, info));
    return action->query != NULL ? ask_store(store, action->query, call, call->words, info)
                                 : action->run(store, call, info);
}

static int run(void *context, int count, char **operands)
{
    const struct store_fields *fields = context;
    struct err_info info = {0};
    if (fields->use_json && fields->use_csv) {
        return command_refuse(&command_store, "--json and --csv cannot be combined");
    }
    CLEANUP(strbuf_release) struct strbuf json_labels = {0};
    CLEANUP(label_list_release) struct label_list labels = {0};
    struct call call = {.fields = fields, .words = operands + 1, .count = count - 1};
    const struct action *action = NULL;
    if (find_action(&call, operands[0], &action, &info) != ERR_OK ||
        scope_of(fields, &call.scope, &info) != ERR_OK ||
        split_labels(&fields->labels, &labels, &info) != ERR_OK ||
        write_labels(&labels, &json_labels) != ERR_OK) {
        return command_usage_error(&command_store, &info);
    }
    call.scope.labels = labels.items;
    call.scope.label_count = labels.count;
    call.json_labels = strbuf_text(&json_labels);
    return command_end(run_action(action, &call, &info), &info, STATUS_OK);
}

static const char *const action_names[] = {"add",   "list",   "top",   "diff", "query",
                                           "prune", "schema", "serve", NULL};

const struct command command_store = {
    .name = "store",
    .summary = "keep many recordings in one database and compare them",
    .synopsis = "ACTION [options] [FILE... | OLD NEW | QUERY]",
    .description =
        "Keep many recordings in one database, and compare versions, hosts and times.\n"
        "The store is a SQLite file, or a database of a ClickHouse server.\n\n"
        "  add FILE...             add recordings, each once\n"
        "  list                    list the recordings, newest first\n"
        "  top                     list the call sites with the highest cost\n"
        "  diff OLD NEW            list what changed between two versions, over all hosts\n"
        "  query growth OLD NEW    list what grew between two versions, over all hosts\n"
        "  query hosts             list where a host differs from the other hosts\n"
        "  query history FUNCTION  list what one function cost in the newest recordings\n"
        "  query oom               list what recordings that ran out of memory have in\n"
        "                          common\n"
        "  query SELECT...         run a SQL statement, which may only read\n"
        "  prune                   remove the recordings that the options select\n"
        "  schema                  print the statements that make ClickHouse's tables\n"
        "  serve                   take recordings and answer Grafana, over HTTP\n\n"
        "The options select recordings, such as --service web --since 7d. Figures of\n"
        "diff, growth and hosts are means per recording.\n",
    .examples = "cairn store add --service web --version 1.1 run.cairn\n"
                "cairn store query growth 1.0 1.1 --service web\n"
                "cairn store prune --until 30d\n"
                "cairn store prune --policy 7d,30d/1d,365d/7d\n",
    .options = {.specs = specs,
                .count = ARRAY_LEN(specs),
                .shared = {NAME_OPTIONS(store_fields, names)},
                .follows_operands = true},
    .words = action_names,
    .fields_bytes = sizeof(struct store_fields),
    .defaults = &defaults,
    .run = run,
};
