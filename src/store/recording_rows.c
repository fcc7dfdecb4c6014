// SPDX-License-Identifier: MIT
// recording_rows: see recording_rows.h.
#include "store/recording_rows.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "formats/codec/clean_text.h"
#include "host/containers/map_u64.h"
#include "host/os/file.h"
#include "profile/accuracy/sampling.h"
#include "profile/calls/call_sites.h"
#include "profile/model/function_name.h"
#include "profile/tables/summary.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    NAMES_MAX = 8,        // texts of one table row
    RECORDING_FACTS = 19, // columns of `recordings` before the costs
};

// The id of a function as it is in the frames of stacks.
struct function_id {
    int64_t id;    // 0 before it was added
    char text[24]; // in decimal digits
    size_t len;
};

DEFINE_VEC(function_id_vec, struct function_id);

struct work {
    const struct recording_source *source; // borrowed
    const struct profile *profile;         // borrowed
    struct recording_rows *rows;           // borrowed
    struct function_id_vec functions;      // owned; by function
    struct map_u64 by_id;                  // owned; id of a stack: index in the rows' costs
    struct strbuf texts[NAMES_MAX];        // owned; scratch
};

static void work_release(struct work *work)
{
    function_id_vec_release(&work->functions);
    map_u64_release(&work->by_id);
    for (size_t i = 0; i < NAMES_MAX; i++) {
        strbuf_release(&work->texts[i]);
    }
}

static int64_t hash_of(const struct strbuf *text)
{
    return (int64_t)XXH3_64bits(strbuf_text(text), text->len);
}

// Return the text cleaned, in scratch buffer `at`.
static struct store_value clean_text(struct work *work, size_t at, const char *text)
{
    struct strbuf *out = &work->texts[at];
    strbuf_clear(out);
    clean_append(out, text, (struct clean_rule){0});
    if (out->len > STORE_NAME_MAX) {
        size_t len = STORE_NAME_MAX;
        while ((out->data[len] & 0xc0) == 0x80) { // not within a character of UTF-8
            len--;
        }
        strbuf_truncate(out, len);
    }
    return store_text(strbuf_text(out));
}

static MUST_USE enum err add_row(struct work *work,
                                 struct store_table *table,
                                 const struct store_value *values,
                                 size_t count)
{
    for (size_t i = 0; i < NAMES_MAX; i++) {
        TRY(strbuf_result(&work->texts[i]));
    }
    for (size_t i = table->names.len; i < count; i++) {
        TRY(store_table_add_column(table, ""));
    }
    for (size_t i = 0; i < count; i++) {
        const bool is_text = values[i].kind == STORE_TEXT;
        TRY(store_table_add(table, &values[i], is_text ? strlen(values[i].text) : 0));
    }
    return ERR_OK;
}

static const char *module_of(const struct work *work, uint32_t module, bool wants_build_id)
{
    if (module == REC_NONE) {
        return "";
    }
    const struct rec_module *found = &work->profile->recording.modules[module];
    return wants_build_id ? profile_string(work->profile, found->build_id)
                          : path_file_name(profile_string(work->profile, found->path));
}

// Find the id of a function, and add it when it is seen first. REC_NONE: no function.
static MUST_USE enum err
find_function(struct work *work, uint32_t function, const struct function_id **out)
{
    enum {
        NAME,
        SHORT_NAME,
        MODULE,
        KEY
    };
    const struct code_index *code = &work->profile->code;
    struct function_id *known =
        &work->functions.items[function != REC_NONE ? function : code->functions.len];
    *out = known;
    if (known->id != 0) {
        return ERR_OK;
    }
    const char *name = "(no stack)";
    const char *module = "";
    const char *build_id = "";
    if (function != REC_NONE) {
        const struct code_function *found = &code->functions.items[function];
        name = string_table_get(&code->names, found->name);
        module = module_of(work, found->module, false);
        build_id = (found->flags & CODE_UNKNOWN) != 0 ? module_of(work, found->module, true) : "";
    }
    struct store_value values[] = {
        {0}, clean_text(work, NAME, name), {0}, clean_text(work, MODULE, module)};
    struct strbuf *key = &work->texts[KEY];
    struct strbuf *clone_free = &work->texts[NAME];
    strbuf_truncate(clone_free, name_len_without_clones(strbuf_text(clone_free)));
    strbuf_clear(&work->texts[SHORT_NAME]);
    name_append(&work->texts[SHORT_NAME], strbuf_text(clone_free), NAME_NO_TEMPLATES);
    strbuf_clear(key);
    strbuf_append(key, strbuf_text(clone_free), clone_free->len);
    strbuf_append_char(key, '\n');
    strbuf_append_text(key, values[3].text);
    strbuf_append_char(key, '\n');
    strbuf_append_text(key, build_id);
    values[2] = store_text(strbuf_text(&work->texts[SHORT_NAME]));
    const int64_t id = hash_of(key);
    values[0] = store_integer(id != 0 ? id : 1);
    TRY(add_row(work, &work->rows->functions, values, ARRAY_LEN(values)));
    known->id = values[0].integer;
    known->len = (size_t)snprintf(known->text, sizeof(known->text), "%" PRId64, known->id); // fits
    return ERR_OK;
}

static uint32_t function_at(const struct work *work, uint32_t location)
{
    return location != REC_NONE ? profile_function_at(work->profile, location) : REC_NONE;
}

// Append the ids of the stack's functions, innermost first.
static MUST_USE enum err
append_frames(struct work *work, const struct call_tree *tree, uint32_t node, struct strbuf *out)
{
    for (; node != 0; node = tree->nodes.items[node].parent) {
        const struct function_id *function;
        TRY(find_function(work, function_at(work, tree->nodes.items[node].location), &function));
        if (out->len > 0) {
            strbuf_append_char(out, ',');
        }
        strbuf_append(out, function->text, function->len);
    }
    return ERR_OK;
}

static MUST_USE enum err add_stack(struct work *work,
                                   const struct call_sites *sites,
                                   const struct call_site *site,
                                   uint32_t node)
{
    enum {
        FILE_NAME = 4,
        FRAMES,
        KEY
    };
    const bool is_known = site->location != REC_NONE;
    const char *file = is_known ? profile_location_file(work->profile, site->location) : "";
    const uint32_t line = is_known ? profile_location_get(work->profile, site->location)->line : 0;
    struct strbuf *frames = &work->texts[FRAMES];
    struct strbuf *key = &work->texts[KEY];
    struct stack_costs stack = {.costs = *call_sites_costs(sites, node)};
    const struct store_value file_value = clean_text(work, FILE_NAME, file);
    const struct function_id *function;
    TRY(find_function(work, function_at(work, site->location), &function));
    stack.function = function->id;
    strbuf_clear(frames);
    TRY(append_frames(work, &sites->tree, node, frames));
    strbuf_clear(key);
    strbuf_append(key, function->text, function->len);
    strbuf_append_char(key, '\n');
    strbuf_append_text(key, file_value.text);
    strbuf_append_char(key, '\n');
    strbuf_append_integer(key, line);
    strbuf_append_char(key, '\n');
    strbuf_append(key, strbuf_text(frames), frames->len);
    stack.id = hash_of(key);
    const uint32_t *known = map_u64_find(&work->by_id, (uint64_t)stack.id);
    if (known != NULL) {
        costs_add(&work->rows->costs.items[*known].costs, &stack.costs);
        return ERR_OK;
    }
    const struct store_value values[] = {store_integer(stack.id), store_integer(stack.function),
                                         file_value, store_integer(line),
                                         store_text(strbuf_text(frames))};
    TRY(add_row(work, &work->rows->stacks, values, ARRAY_LEN(values)));
    TRY(map_u64_put(&work->by_id, (uint64_t)stack.id, (uint32_t)work->rows->costs.len));
    return stack_costs_vec_push(&work->rows->costs, stack);
}

static MUST_USE enum err add_stacks(struct work *work)
{
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    TRY(call_sites_build(work->source->selection, &sites));
    for (size_t i = 0; i < sites.sites.len; i++) {
        const struct call_site *site = &sites.sites.items[i];
        for (uint32_t s = 0; s < site->stack_count; s++) {
            TRY(add_stack(work, &sites, site, sites.stacks.items[site->stack_first + s]));
        }
    }
    return ERR_OK;
}

static struct store_value clamped_number(uint64_t number)
{
    return store_integer(number > INT64_MAX ? INT64_MAX : (int64_t)number);
}

// Return a cost; NULL if the recording does not know it.
static struct store_value
known_cost(const struct recording_rows *rows, const struct costs *costs, enum cost cost)
{
    return rows->knows_costs[cost] ? clamped_number(costs->values[cost]) : (struct store_value){0};
}

static const char *chosen_label(const char *label, const char *recorded)
{
    return label != NULL ? label : recorded;
}

// The build-id of the program, "" if it is unknown.
static const char *program_version(const struct work *work)
{
    const struct recording *recording = &work->profile->recording;
    for (size_t i = 0; i < recording->module_count; i++) {
        if (strcmp(profile_string(work->profile, recording->modules[i].path),
                   profile_string(work->profile, recording->meta.program)) == 0) {
            return profile_string(work->profile, recording->modules[i].build_id);
        }
    }
    return "";
}

// A run is what began at one time on one machine as one process.
static int64_t run_of(struct work *work)
{
    enum {
        KEY = 6
    };
    const struct rec_meta *meta = &work->profile->recording.meta;
    struct strbuf *key = &work->texts[KEY];
    if (meta->start_unix_ns == 0) {
        return work->source->id;
    }
    strbuf_clear(key);
    strbuf_printf(key, "%" PRIu64 "\n%u\n%s\n%s\n%s", meta->start_unix_ns, meta->pid,
                  profile_string(work->profile, meta->host),
                  profile_string(work->profile, meta->program),
                  profile_string(work->profile, meta->command_line));
    const int64_t run = hash_of(key);
    return run != 0 ? run : 1;
}

// Where a state is among those of its run: by its length, and by its content if two are equally
// long, so that one of them is the last.
static int64_t order_in_run(const struct work *work, uint64_t runtime_ms)
{
    enum {
        CONTENT_BITS = 20,
    };
    const uint64_t most_ms = (1ULL << (63 - CONTENT_BITS)) - 1;
    const uint64_t content = (uint64_t)work->source->id & ((1U << CONTENT_BITS) - 1);
    return (int64_t)((runtime_ms < most_ms ? runtime_ms : most_ms) << CONTENT_BITS | content);
}

static uint64_t lost_events(const struct recording *recording)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < recording->counter_count; i++) {
        lost += recording->counters[i].kind == REC_COUNTER_LOSS ? recording->counters[i].value : 0;
    }
    return lost;
}

// Write the unknown costs: "peak_blocks,frees,", each followed by a comma.
static struct store_value unknown_costs(struct work *work, size_t at)
{
    strbuf_clear(&work->texts[at]);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if (!work->rows->knows_costs[cost]) {
            strbuf_printf(&work->texts[at], ",%s,", cost_get_info((enum cost)cost)->key);
        }
    }
    return store_text(strbuf_text(&work->texts[at]));
}

// Whether memory ran out: SIGKILL ended the program, as the kernel does, or the recording ends
// without an end after the mark of --oom-guard.
static bool looks_like_oom(const struct profile *profile)
{
    const struct recording *recording = &profile->recording;
    const int32_t status = recording->meta.exit_status;
    bool is_marked = false;
    for (size_t i = 0; i < recording->mark_count; i++) {
        is_marked |=
            strcmp(profile_string(profile, recording->marks[i].text), "memory limit near") == 0;
    }
    return (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
           (is_marked && recording->meta.state == REC_STATE_RUNNING);
}

static MUST_USE enum err add_recording(struct work *work)
{
    const struct recording *recording = &work->profile->recording;
    const struct rec_meta *meta = &recording->meta;
    const struct store_labels *labels = work->source->labels;
    const char *program = path_file_name(profile_string(work->profile, meta->program));
    const char *host = profile_string(work->profile, meta->host);
    struct summary summary;
    TRY(summary_build(work->source->selection, &summary));
    const struct sampling sampling = sampling_of(recording);
    struct store_value values[RECORDING_FACTS + COST_COUNT + 3] = {
        store_integer(work->source->id),
        clean_text(work, 0, chosen_label(labels->service, program)),
        clean_text(work, 1, chosen_label(labels->version, program_version(work))),
        clean_text(work, 2, chosen_label(labels->host, host)),
        clamped_number(meta->start_unix_ns / NS_PER_S),
        clean_text(work, 3, work->source->path),
        clean_text(work, 4, profile_string(work->profile, meta->program)),
        clean_text(work, 5, profile_string(work->profile, meta->command_line)),
        store_text(labels->labels), // JSON, escaped already
        store_text(profile_state_name(work->profile)),
        store_integer(meta->exit_status),
        store_integer(labels->is_oom || looks_like_oom(work->profile)),
        store_integer(sampling.is_sampled),
        unknown_costs(work, 7),
        clamped_number(summary.runtime_ms),
        clamped_number(summary.peak_time_ms),
        clamped_number(summary.peak_error_bytes),
        clamped_number(summary.peak_rss_bytes),
        clamped_number(lost_events(recording)),
    };
    for (int cost = 0; cost < COST_COUNT; cost++) {
        values[RECORDING_FACTS + cost] = known_cost(work->rows, &summary.costs, (enum cost)cost);
    }
    struct store_value *last = values + RECORDING_FACTS + COST_COUNT;
    last[0] = clamped_number(sampling.is_sampled ? sampling.bytes : 0);
    last[1] = store_integer(run_of(work));
    last[2] = store_integer(order_in_run(work, summary.runtime_ms));
    return add_row(work, &work->rows->recording, values, ARRAY_LEN(values));
}

static int by_stack_id(const void *left, const void *right)
{
    const struct stack_costs *a = left;
    const struct stack_costs *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

// The costs come in the order of their key, which a database adds fastest.
static MUST_USE enum err add_all(struct work *work)
{
    for (int cost = 0; cost < COST_COUNT; cost++) {
        work->rows->knows_costs[cost] = selection_knows(work->source->selection, (enum cost)cost);
    }
    TRY(function_id_vec_resize(&work->functions, work->profile->code.functions.len + 1));
    TRY(add_stacks(work));
    stack_costs_vec_sort(&work->rows->costs, by_stack_id);
    return add_recording(work);
}

void recording_rows_release(struct recording_rows *rows)
{
    store_table_release(&rows->functions);
    store_table_release(&rows->stacks);
    store_table_release(&rows->recording);
    stack_costs_vec_release(&rows->costs);
}

static size_t table_bytes(const struct store_table *table)
{
    return table->cells.cap * sizeof(*table->cells.items) + table->texts.cap;
}

size_t recording_rows_bytes(const struct recording_rows *rows)
{
    return table_bytes(&rows->functions) + table_bytes(&rows->stacks) +
           table_bytes(&rows->recording) + rows->costs.cap * sizeof(*rows->costs.items);
}

enum err recording_rows_make(const struct recording_source *source,
                             struct recording_rows *out,
                             struct err_info *info)
{
    struct recording_rows rows = {.id = source->id};
    CLEANUP(work_release)
    struct work work = {.source = source, .profile = source->selection->profile, .rows = &rows};
    const enum err problem = add_all(&work);
    if (problem != ERR_OK) {
        recording_rows_release(&rows);
        return problem == ERR_LIMIT
                   ? err_set(info, problem,
                             "'%s' has more than %d functions or call stacks, which is more than a "
                             "store takes",
                             source->path, STORE_ROWS_MAX)
                   : problem;
    }
    *out = rows;
    return ERR_OK;
}

// --- into a store --------------------------------------------------------------------------------

void rows_seen_release(struct rows_seen *seen)
{
    map_u64_release(&seen->functions);
    map_u64_release(&seen->stacks);
}

// Put the rows of a table whose ids, in the first column, were not seen.
static MUST_USE enum err put_table(const struct store_table *table,
                                   enum store_part part,
                                   struct map_u64 *seen,
                                   struct store *engine,
                                   struct err_info *info)
{
    struct store_value values[STORE_COLUMNS_MAX];
    const size_t count = table->names.len;
    for (size_t row = 0; row < store_table_rows(table); row++) {
        const uint64_t id = (uint64_t)store_table_integer(table, row, 0);
        if (seen != NULL && map_u64_find(seen, id) != NULL) {
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            values[i] = store_table_get(table, row, i);
        }
        TRY(engine->kind->put(engine, part, values, count, info));
        TRY(seen != NULL ? map_u64_put(seen, id, 0) : ERR_OK);
    }
    return ERR_OK;
}

static MUST_USE enum err
put_costs(const struct recording_rows *rows, struct store *engine, struct err_info *info)
{
    enum {
        SERVICE = 1, // in the row of the recording; version, host and time follow
        FACTS = 4,
    };
    struct store_value values[FACTS + 3 + COST_COUNT];
    for (size_t i = 0; i < FACTS; i++) {
        values[i] = store_table_get(&rows->recording, 0, SERVICE + i);
    }
    values[FACTS] = store_integer(rows->id);
    for (size_t i = 0; i < rows->costs.len; i++) {
        const struct stack_costs *stack = &rows->costs.items[i];
        values[FACTS + 1] = store_integer(stack->id);
        values[FACTS + 2] = store_integer(stack->function);
        for (int cost = 0; cost < COST_COUNT; cost++) {
            values[FACTS + 3 + cost] = known_cost(rows, &stack->costs, (enum cost)cost);
        }
        TRY(engine->kind->put(engine, PART_ROWS, values, ARRAY_LEN(values), info));
    }
    return ERR_OK;
}

enum err recording_rows_put(const struct recording_rows *rows,
                            bool has_costs,
                            struct rows_seen *seen,
                            struct store *engine,
                            struct err_info *info)
{
    TRY(put_table(&rows->functions, PART_FUNCTIONS, &seen->functions, engine, info));
    TRY(put_table(&rows->stacks, PART_STACKS, &seen->stacks, engine, info));
    TRY(has_costs ? ERR_OK : put_costs(rows, engine, info));
    return put_table(&rows->recording, PART_RECORDINGS, NULL, engine, info);
}
