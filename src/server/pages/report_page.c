// SPDX-License-Identifier: MIT
// report_page: see report_page.h. docs/format/html-report.md describes the names of the answers;
// web/src/api/report-file.ts reads them.
//
// Two threads make the answers of a scope, each the next one of the list, and share what
// writer.kept has. The page has them in the order of the list. Two, since each may hold a whole
// tree.
#include "server/pages/report_page.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/threads/quiet_thread.h"
#include "profile/tables/summary.h"
#include "server/api/answer.h"
#include "server/http/encoding.h"
#include "server/pages/assets.h"
#include "views_json/views/views.h"

enum {
    SCOPES_MAX = 32,            // processes and threads with separate answers
    SCOPES_NODES_MAX = 1000000, // stack nodes times scopes, which bounds the time
    SCOPES_MAX_MIB = 12,        // above this size no more are added
    SCOPES_KNOWN_MAX = 128,     // of each kind, to report how many were omitted
};

// The limits of tables and trees.
struct cut {
    uint32_t rows;
    uint32_t nodes;
};

static const struct cut cuts[] = {{20000, 30000}, {4000, 6000}, {800, 1200}, {100, 200}};

enum cut_kind {
    CUT_NONE,
    CUT_ROWS,
    CUT_NODES,
};

// An answer: `key` is its name in the page, and with `extra` the target of its request.
struct wanted {
    const char *key;
    const char *extra;
    enum cut_kind cut;
    bool has_no_thread; // does not take a filter by thread
};

#define COSTS "&costs=all"
#define TREE  "&costs=all&any_cost=1"

static const struct wanted once[] = {
    {"meta?", "", CUT_NONE, true}, {"health?", "", CUT_NONE, true}, {"adhoc?", "", CUT_ROWS, true}};

static const struct wanted each[] = {
    {"summary?", "&limit=20", CUT_NONE, false},
    {"functions?hide_wrappers=1", COSTS, CUT_ROWS, false},
    {"functions?", COSTS, CUT_ROWS, false},
    {"call_graph?hide_wrappers=1", COSTS, CUT_ROWS, false},
    {"call_graph?", COSTS, CUT_ROWS, false},
    {"tree?direction=top_down&collapse=1&hide_wrappers=1", TREE, CUT_NODES, false},
    {"tree?direction=top_down&collapse=1", TREE, CUT_NODES, false},
    {"tree?direction=bottom_up&collapse=1&hide_wrappers=1", TREE, CUT_NODES, false},
    {"tree?direction=bottom_up&collapse=1", TREE, CUT_NODES, false},
    {"series?value=live_bytes&by=call_site", "&top=50", CUT_NONE, false},
    {"series?value=live_bytes&by=stack", "&top=50", CUT_NONE, false},
    {"series?value=allocations&by=call_site", "&top=50", CUT_NONE, false},
    {"series?value=allocations&by=stack", "&top=50", CUT_NONE, false},
    {"series?value=temporary&by=call_site", "&top=50", CUT_NONE, false},
    {"series?value=temporary&by=stack", "&top=50", CUT_NONE, false},
    {"series?value=allocated_bytes&by=call_site", "&top=50", CUT_NONE, false},
    {"series?value=allocated_bytes&by=stack", "&top=50", CUT_NONE, false},
    {"sizes?rank=blocks", "&top=50", CUT_NONE, false},
    {"sizes?rank=bytes", "&top=50", CUT_NONE, false},
    {"lifetimes?rank=blocks", "&top=50", CUT_NONE, false},
    {"lifetimes?rank=bytes", "&top=50", CUT_NONE, false},
    {"size_lifetime?", "", CUT_NONE, false},
    {"leaks?by=call_site", "", CUT_ROWS, false},
    {"leaks?by=stack", "", CUT_ROWS, false},
    {"rss?", "", CUT_NONE, true},
    {"processes?", COSTS, CUT_NONE, false},
    {"threads?", COSTS, CUT_NONE, false},
    {"modules?", COSTS, CUT_NONE, false},
    {"files?", COSTS, CUT_NONE, false},
};

// A process or thread with separate answers.
struct scope {
    bool is_thread;
    uint32_t id;
};

DEFINE_VEC(scope_vec, struct scope);

struct writer {
    const struct report_page *page;
    struct server_settings settings;
    struct selection selected;      // by the page's filter; has `kept`
    struct kept_results kept;       // what answers for the whole page share
    struct kept_results kept_trees; // which take much memory
    struct snapshot *snapshot;      // owned reference
    struct tree_cache trees;
    struct cut cut;
    struct scope_vec scopes; // available ones
    size_t scopes_written;   // how many of them were added, from the first
    struct strbuf blocks;    // the answers as written to the page
};

static void writer_release(struct writer *writer)
{
    tree_cache_release(&writer->trees);
    kept_results_release(&writer->kept);
    kept_results_release(&writer->kept_trees);
    selection_release(&writer->selected);
    snapshot_unref(writer->snapshot);
    scope_vec_release(&writer->scopes);
    strbuf_release(&writer->blocks);
}

// `key` is trusted. Its only special character of HTML is '&', which is read literally here.
static MUST_USE enum err
add_block(const char *key, const char *scope, const struct strbuf *json, struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf packed = {0};
    TRY(gzip_compress(strbuf_bytes(json), GZIP_SMALL, &packed));
    strbuf_printf(out, "<script type=\"application/octet-stream\" data-answer=\"%s%s\">", key,
                  scope);
    base64_append(out, strbuf_bytes(&packed));
    strbuf_append_text(out, "</script>\n");
    return strbuf_result(out);
}

// Add an answer, unless the recording lacks its data: `capabilities` informs the page of that.
static MUST_USE enum err add_answer(struct writer *writer,
                                    const struct wanted *wanted,
                                    const char *scope,
                                    struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf target = {0};
    CLEANUP(strbuf_release) struct strbuf json = {0};
    struct problem problem = {0};
    strbuf_printf(&target, "/api/v1/%s%s%s", wanted->key, wanted->extra, scope);
    if (wanted->cut != CUT_NONE) {
        strbuf_printf(&target, "&limit=%" PRIu32,
                      wanted->cut == CUT_ROWS ? writer->cut.rows : writer->cut.nodes);
    }
    TRY(strbuf_result(&target));
    const struct answer_source source = {
        .settings = &writer->settings, .snapshot = writer->snapshot, .trees = &writer->trees};
    const struct route *route = route_find(target.data);
    struct request_args args = {0};
    request_args_split(&args, strchr(target.data, '?') + 1); // each key has a '?'
    enum err outcome = answer_write(&source, route, &args, &json, &problem);
    if (outcome == ERR_UNSUPPORTED) {
        return ERR_OK;
    }
    TRY(outcome);
    return add_block(wanted->key, scope, &json, out);
}

// The answers of a scope, while they are made.
struct batch {
    struct writer *writer;
    const char *suffix; // of the keys
    bool is_thread;     // the scope is a thread
    atomic_size_t next; // in `each`: the first one that is not taken yet
    struct strbuf blocks[ARRAY_LEN(each)];
    enum err outcomes[ARRAY_LEN(each)];
};

static void batch_release(struct batch *batch)
{
    for (size_t i = 0; i < ARRAY_LEN(each); i++) {
        strbuf_release(&batch->blocks[i]);
    }
}

// Make answers until none is left, or one fails.
static void *make_answers(void *of_batch)
{
    struct batch *batch = of_batch;
    for (;;) {
        // Relaxed: the number alone is shared. The end of the thread publishes the answers.
        const size_t i = atomic_fetch_add_explicit(&batch->next, 1, memory_order_relaxed);
        if (i >= ARRAY_LEN(each)) {
            return NULL;
        }
        if (!batch->is_thread || !each[i].has_no_thread) {
            batch->outcomes[i] =
                add_answer(batch->writer, &each[i], batch->suffix, &batch->blocks[i]);
        }
        if (batch->outcomes[i] != ERR_OK) {
            // Relaxed: as above.
            atomic_store_explicit(&batch->next, ARRAY_LEN(each), memory_order_relaxed);
        }
    }
}

static MUST_USE enum err
add_scope(struct writer *writer, const struct scope *scope, const char *suffix)
{
    CLEANUP(batch_release)
    struct batch batch = {
        .writer = writer, .suffix = suffix, .is_thread = scope != NULL && scope->is_thread};
    pthread_t helper;
    const bool has_helper = quiet_thread_start(&helper, make_answers, &batch) == 0;
    (void)make_answers(&batch); // its result is NULL
    if (has_helper) {
        (void)pthread_join(helper, NULL); // cannot fail: it was started, and is joined once
    }
    for (size_t i = 0; i < ARRAY_LEN(each); i++) {
        TRY(batch.outcomes[i]);
        strbuf_append(&writer->blocks, strbuf_text(&batch.blocks[i]), batch.blocks[i].len);
    }
    return strbuf_result(&writer->blocks);
}

static size_t mib_of(size_t bytes)
{
    return bytes >> 20;
}

// Add answers for single processes and threads, within the limits of size and time.
static MUST_USE enum err add_scopes(struct writer *writer)
{
    size_t nodes = writer->page->profile->recording.node_count + 1;
    size_t most = SCOPES_NODES_MAX / nodes;
    most = min_u64(most, SCOPES_MAX);
    writer->scopes_written = 0;
    while (writer->scopes_written < writer->scopes.len && writer->scopes_written < most &&
           mib_of(writer->blocks.len) < SCOPES_MAX_MIB) {
        const struct scope *scope = &writer->scopes.items[writer->scopes_written];
        char suffix[32];
        (void)snprintf(suffix, sizeof(suffix), "&%s=%" PRIu32,
                       scope->is_thread ? "thread" : "process", scope->id); // fits
        TRY(add_scope(writer, scope, suffix));
        writer->scopes_written++;
    }
    return ERR_OK;
}

// Add what the page needs to know about itself.
static MUST_USE enum err add_info(struct writer *writer)
{
    CLEANUP(strbuf_release) struct strbuf json = {0};
    CLEANUP(u64_vec_release) struct u64_vec processes = {0};
    CLEANUP(u64_vec_release) struct u64_vec threads = {0};
    struct json_writer w;
    struct view view = {.w = &w, .layout = VIEW_COLUMNS};
    for (size_t i = 0; i < writer->scopes_written; i++) {
        const struct scope *scope = &writer->scopes.items[i];
        TRY(u64_vec_push(scope->is_thread ? &threads : &processes, scope->id));
    }
    json_to_strbuf(&w, &json, JSON_COMPACT);
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    json_key_string(&w, "filter", writer->page->filter_text);
    view_numbers(&view, "processes", processes.items, processes.len);
    view_numbers(&view, "threads", threads.items, threads.len);
    json_key_u64(&w, "omitted", writer->scopes.len - writer->scopes_written);
    json_key_u64(&w, "rows_max", writer->cut.rows);
    json_key_u64(&w, "nodes_max", writer->cut.nodes);
    return json_finish(&w) == ERR_OK ? add_block("report?", "", &json, &writer->blocks)
                                     : ERR_NO_MEMORY;
}

static MUST_USE enum err add_all(struct writer *writer)
{
    strbuf_clear(&writer->blocks);
    for (size_t i = 0; i < ARRAY_LEN(once); i++) {
        TRY(add_answer(writer, &once[i], "", &writer->blocks));
    }
    TRY(add_scope(writer, NULL, ""));
    if (mib_of(writer->blocks.len) < REPORT_PAGE_MAX_MIB) {
        TRY(add_scopes(writer));
    }
    return add_info(writer);
}

static MUST_USE enum err add_all_that_fits(struct writer *writer)
{
    for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
        writer->cut = cuts[i];
        const enum err outcome = add_all(writer);
        if (outcome != ERR_LIMIT && mib_of(writer->blocks.len) < REPORT_PAGE_MAX_MIB) {
            return outcome;
        }
    }
    return ERR_LIMIT;
}

static bool knows_scope(const struct scope_vec *scopes, struct scope wanted)
{
    for (size_t i = 0; i < scopes->len; i++) {
        if (scopes->items[i].id == wanted.id && scopes->items[i].is_thread == wanted.is_thread) {
            return true;
        }
    }
    return false;
}

// List the ids of one kind that have selected rows; none if there is only one, which is everything.
static MUST_USE enum err
find_scopes(const struct selection *selection, bool threads, struct scope_vec *out)
{
    const struct recording *recording = &selection->profile->recording;
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    CLEANUP(scope_vec_release) struct scope_vec found = {0};
    TRY(groups_build(selection, threads ? GROUP_BY_THREAD : GROUP_BY_PROCESS, &groups));
    for (size_t i = 0; i < groups.len && found.len < SCOPES_KNOWN_MAX; i++) {
        uint32_t id = groups.items[i].id;
        if (id == REC_NONE || groups.items[i].costs.values[COST_ALLOCATIONS] == 0) {
            continue;
        }
        struct scope scope = {threads, threads ? recording->threads[id].thread_id
                                               : recording->processes[id].pid};
        if (!knows_scope(&found, scope)) {
            TRY(scope_vec_push(&found, scope));
        }
    }
    for (size_t i = 0; found.len > 1 && i < found.len; i++) {
        TRY(scope_vec_push(out, found.items[i]));
    }
    return ERR_OK;
}

// Choose the scopes: none under a filter by process or thread.
static MUST_USE enum err choose_scopes(struct writer *writer)
{
    const struct filter *filter = writer->page->filter;
    if (filter != NULL && (filter->pid != 0 || filter->thread != NULL)) {
        return ERR_OK;
    }
    TRY(find_scopes(&writer->selected, false, &writer->scopes));
    return find_scopes(&writer->selected, true, &writer->scopes);
}

static const struct asset *find_only(const char *suffix)
{
    const struct asset *found = NULL;
    for (const struct asset *asset = asset_table; asset->path != NULL; asset++) {
        size_t len = strlen(asset->path);
        if (len > strlen(suffix) && strcmp(asset->path + len - strlen(suffix), suffix) == 0) {
            if (found != NULL) {
                return NULL;
            }
            found = asset;
        }
    }
    return found;
}

// Expand a file of the viewer to text. Refuse text that would end its HTML element.
static MUST_USE enum err
expand_page(const struct asset *asset, const char *const *forbidden, struct strbuf *out)
{
    if (asset == NULL) {
        return ERR_UNSUPPORTED;
    }
    struct bytes packed = {asset->begin, (size_t)(asset->end - asset->begin)};
    TRY(gzip_expand(packed, out));
    for (; *forbidden != NULL; forbidden++) {
        if (strcasestr(strbuf_text(out), *forbidden) != NULL) {
            return ERR_UNSUPPORTED;
        }
    }
    return ERR_OK;
}

static MUST_USE enum err write_head(const struct asset *script,
                                    const struct asset *style,
                                    const struct strbuf *css,
                                    FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf head = {0};
    strbuf_append_text(&head,
                       "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "script-src 'sha256-");
    base64_append_hex(&head, script->sha256);
    strbuf_append_text(&head, "'; style-src 'sha256-");
    base64_append_hex(&head, style->sha256);
    strbuf_append_text(&head,
                       "'; img-src data: blob:; base-uri 'none'; form-action 'none'\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta name=\"color-scheme\" content=\"light dark\">\n"
                       "<meta name=\"generator\" content=\"cairn export --html\">\n"
                       "<title>cairn</title>\n");
    TRY(strbuf_result(&head));
    // Closing the stream reports output errors.
    (void)fprintf(out, "%s<style>%s</style>\n</head>\n<body>\n<div id=\"app\"></div>\n",
                  strbuf_text(&head), strbuf_text(css));
    (void)fprintf(out, "<noscript>This report needs JavaScript. Without it: cairn report FILE."
                       "</noscript>\n");
    return ERR_OK;
}

static MUST_USE enum err write_page(const struct writer *writer, FILE *out)
{
    static const char *const no_script[] = {"</script", "<!--", NULL};
    static const char *const no_style[] = {"</style", NULL};
    const struct asset *script = find_only(".js");
    const struct asset *style = find_only(".css");
    CLEANUP(strbuf_release) struct strbuf js = {0};
    CLEANUP(strbuf_release) struct strbuf css = {0};
    TRY(expand_page(script, no_script, &js));
    TRY(expand_page(style, no_style, &css));
    TRY(write_head(script, style, &css, out));
    // Closing the stream reports output errors.
    (void)fwrite(strbuf_text(&writer->blocks), 1, writer->blocks.len, out);
    (void)fprintf(out, "<script type=\"module\">%s</script>\n</body>\n</html>\n", strbuf_text(&js));
    return ERR_OK;
}

static MUST_USE enum err select_page(struct writer *writer)
{
    TRY(profile_select(writer->page->profile, writer->page->filter, &writer->selected, NULL));
    kept_results_init(&writer->kept, SIZE_MAX);
    kept_results_init(&writer->kept_trees, SIZE_MAX);
    writer->selected.kept = &writer->kept;
    writer->selected.trees = &writer->kept_trees;
    writer->settings.selection = &writer->selected;
    return ERR_OK;
}

enum err report_page_write(const struct report_page *page, FILE *out)
{
    CLEANUP(writer_release)
    struct writer writer = {
        .page = page,
        .settings = {.tool_version = page->tool_version, .filter = page->filter},
        .trees = TREE_CACHE_INIT};
    CLEANUP(opened_unrefp) struct opened *opened = NULL;
    TRY(opened_borrow(page->profile, page->path, &opened));
    TRY(snapshot_new(1, opened, NULL, &writer.snapshot));
    TRY(select_page(&writer));
    TRY(choose_scopes(&writer));
    TRY(add_all_that_fits(&writer));
    return write_page(&writer, out);
}
