// SPDX-License-Identifier: MIT
// export_sqlite: the profile as a SQLite database, for questions in SQL.
//
// sqlite_schema.h has the tables and views. Each table is one case below: its INSERT, its number of
// rows, and the function that sets the values of a row. Only `run` has its own code. The database
// is built in memory (SQLite's memdb) and then written in one piece, so a pipe can take it and no
// half-written file remains. Names are bound as values, never pasted into SQL, and cleaned to valid
// UTF-8 on one line. Failure: SQLite can only run out of memory here, ERR_NO_MEMORY. Context: H.
#include <sqlite3.h>
#include <string.h>

#include "base/compiler.h"
#include "formats/codec/clean_text.h"
#include "formats/export/exporter.h"
#include "formats/export/sqlite_schema.h"
#include "profile/accuracy/sampling.h"
#include "profile/model/profile.h"
#include "profile/tables/adhoc.h"
#include "profile/tables/summary.h"
#include "profile/time/cut_timeline.h"

enum {
    RUN_ENTRIES = 16
};

// A row of `run`: a fact about the recording or about the whole selection.
struct run_entry {
    const char *key;
    const char *text; // borrowed from the profile; NULL: number
    uint64_t number;
};

// The sources of the tables.
struct source {
    const struct export_view *view; // borrowed
    const struct profile *profile;  // borrowed
    const struct recording *recording;
    struct run_entry run[RUN_ENTRIES];
    struct cut_timeline timeline; // owned
    struct adhoc_list adhoc;      // owned
    struct u32_vec framed;        // owned; by frame of `adhoc`: its stack
    struct u32_vec row_marks;     // owned; by row of the recording: 1 if selected
    struct strbuf scratch;        // owned
};

// One INSERT being filled: values are set from left to right.
struct values {
    struct source *source;
    sqlite3_stmt *statement;
    int next;
};

static void put_number(struct values *values, uint64_t number)
{
    // SQLite's integers are signed: a larger value becomes the largest.
    int64_t clamped = number > INT64_MAX ? INT64_MAX : (int64_t)number;
    (void)sqlite3_bind_int64(values->statement, values->next++, clamped); // sqlite3_step reports
                                                                          // failures
}

// Set a number: NULL if it is not known.
static void put_known(struct values *values, bool is_known, uint64_t number)
{
    if (is_known) {
        put_number(values, number);
    } else {
        (void)sqlite3_bind_null(values->statement, values->next++); // sqlite3_step reports failures
    }
}

// Set an index into another table: NULL if there is none.
static void put_index(struct values *values, uint32_t index)
{
    put_known(values, index != REC_NONE, index);
}

// Set a cost: NULL if the selection does not know it, so that sums are unknown, too.
static void put_cost(struct values *values, enum cost cost, uint64_t number)
{
    put_known(values, selection_knows(&values->source->view->selection, cost), number);
}

static void put_text(struct values *values, const char *text)
{
    struct strbuf *clean = &values->source->scratch;
    strbuf_clear(clean);
    clean_append(clean, text, (struct clean_rule){0});
    (void)sqlite3_bind_text(values->statement, values->next++, strbuf_text(clean), -1,
                            SQLITE_TRANSIENT); // sqlite3_step reports failures
}

static void put_string(struct values *values, rec_string id)
{
    put_text(values, profile_string(values->source->profile, id));
}

// --- one row of each table ---------------------------------------------------------------------
// Each function returns false for an entry that the filters exclude.

static bool fill_run(struct values *values, size_t i)
{
    const struct run_entry *entry = &values->source->run[i];
    put_text(values, entry->key);
    if (entry->text != NULL) {
        put_text(values, entry->text);
    } else {
        put_number(values, entry->number);
    }
    return true;
}

static bool fill_process(struct values *values, size_t i)
{
    const struct rec_process *process = &values->source->recording->processes[i];
    put_number(values, i);
    put_number(values, process->pid);
    put_number(values, process->parent_pid);
    put_number(values, process->epoch);
    put_string(values, process->executable);
    put_string(values, process->command_line);
    put_number(values, process->start_ms);
    put_number(values, process->end_ms);
    put_number(values, process->peak_bytes);
    put_number(values, process->peak_rss_bytes);
    return true;
}

static bool fill_thread(struct values *values, size_t i)
{
    const struct rec_thread *thread = &values->source->recording->threads[i];
    put_number(values, i);
    put_number(values, thread->process);
    put_number(values, thread->thread_id);
    put_string(values, thread->name);
    put_number(values, thread->merged_count);
    put_number(values, thread->start_ms);
    put_number(values, thread->end_ms);
    return true;
}

static bool fill_module(struct values *values, size_t i)
{
    const struct rec_module *module = &values->source->recording->modules[i];
    put_number(values, i);
    put_string(values, module->path);
    put_string(values, module->build_id);
    put_number(values, module->is_executable);
    return true;
}

static bool fill_function(struct values *values, size_t i)
{
    const struct code_index *code = &values->source->profile->code;
    put_number(values, i);
    put_text(values, string_table_get(&code->names, code->functions.items[i].name));
    put_index(values, code->functions.items[i].module);
    return true;
}

static bool fill_frame(struct values *values, size_t i)
{
    const struct code_index *code = &values->source->profile->code;
    const struct code_location *location = &code->locations.items[i];
    put_number(values, i);
    put_number(values, location->function);
    put_text(values, string_table_get(&code->names, location->file));
    put_number(values, location->line);
    put_number(values, location->offset);
    return true;
}

static bool fill_stack(struct values *values, size_t i)
{
    const struct call_tree_node *node = &values->source->view->tree.nodes.items[i];
    put_number(values, i);
    put_index(values, node->parent);
    put_index(values, i == 0 ? REC_NONE : node->location);
    put_number(values, node->depth);
    put_number(values, node->is_inlined);
    return true;
}

static bool fill_row(struct values *values, size_t i)
{
    const struct export_view *view = values->source->view;
    uint32_t row = view->selection.rows.items[i];
    struct costs costs = selection_costs(&view->selection, i);
    put_number(values, row);
    put_number(values, view->tree.row_nodes.items[i]);
    put_number(values, values->source->recording->rows[row].thread);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        put_cost(values, (enum cost)cost, costs.values[cost]);
    }
    return true;
}

static bool fill_slice(struct values *values, size_t i)
{
    const struct cut_timeline *timeline = &values->source->timeline;
    const struct timeline_point *point = &timeline->points.items[i];
    put_number(values, i);
    put_number(values, i * timeline->slice_ms);
    put_number(values, (i + 1) * timeline->slice_ms);
    const struct {
        enum cost cost;
        uint64_t value;
    } columns[] = {{COST_ALLOCATIONS, point->allocations},
                   {COST_ALLOCATED_BYTES, point->allocated_bytes},
                   {COST_FREES, point->frees},
                   {COST_FREED_BYTES, point->freed_bytes},
                   {COST_TEMPORARY, point->temporary}};
    const struct selection *selection = &values->source->view->selection;
    const bool is_known = cut_timeline_is_known(selection);
    for (size_t c = 0; c < ARRAY_LEN(columns); c++) {
        put_known(values, is_known && selection_knows(selection, columns[c].cost),
                  columns[c].value);
    }
    put_known(values, is_known, point->live_bytes);
    return true;
}

static bool is_selected(const struct values *values, uint32_t row)
{
    return values->source->row_marks.items[row] != 0;
}

static bool fill_cell(struct values *values, size_t i)
{
    const struct rec_cell *cell = &values->source->recording->cells[i];
    put_number(values, cell->row);
    put_number(values, cell->slice);
    put_cost(values, COST_ALLOCATIONS, cell->allocations);
    put_cost(values, COST_ALLOCATED_BYTES, cell->allocated_bytes);
    put_cost(values, COST_FREES, cell->frees);
    put_cost(values, COST_FREED_BYTES, cell->freed_bytes);
    put_cost(values, COST_TEMPORARY, cell->temporary);
    return is_selected(values, cell->row);
}

static bool fill_bucket(struct values *values, const struct rec_bucket *bucket)
{
    put_number(values, bucket->row);
    put_number(values, rec_bucket_low(bucket->bucket));
    put_number(values, rec_bucket_low(bucket->bucket + 1));
    put_number(values, bucket->count);
    put_number(values, bucket->bytes);
    return is_selected(values, bucket->row);
}

static bool fill_size(struct values *values, size_t i)
{
    return fill_bucket(values, &values->source->recording->size_buckets[i]);
}

static bool fill_lifetime(struct values *values, size_t i)
{
    return fill_bucket(values, &values->source->recording->lifetime_buckets[i]);
}

static bool fill_cohort(struct values *values, size_t i)
{
    const struct rec_cohort *cohort = &values->source->recording->cohorts[i];
    put_number(values, cohort->row);
    put_number(values, cohort->born_slice);
    put_index(values, cohort->freed_slice);
    put_number(values, cohort->blocks);
    put_number(values, cohort->bytes);
    return is_selected(values, cohort->row);
}

static bool fill_block(struct values *values, size_t i)
{
    const struct rec_block *block = &values->source->recording->blocks[i];
    put_number(values, i);
    put_number(values, block->row);
    put_number(values, block->address);
    put_number(values, block->size_bytes);
    put_number(values, block->born_ms);
    put_known(values, (block->flags & REC_BLOCK_END) == 0, block->freed_ms);
    put_number(values, (block->flags & REC_BLOCK_PEAK) != 0);
    put_number(values, (block->flags & REC_BLOCK_END) != 0);
    return is_selected(values, block->row) &&
           bucket_range_has(values->source->view->selection.sizes,
                            rec_bucket_of(block->size_bytes));
}

static bool fill_memory(struct values *values, size_t i)
{
    const struct rec_rss_sample *sample = &values->source->recording->rss_samples[i];
    put_number(values, sample->time_ms);
    put_number(values, sample->process);
    put_number(values, sample->rss_bytes);
    put_number(values, sample->anonymous_bytes);
    put_number(values, sample->file_bytes);
    put_number(values, sample->shmem_bytes);
    put_number(values, sample->swap_bytes);
    put_number(values, sample->minor_faults);
    put_number(values, sample->major_faults);
    return true;
}

static bool fill_adhoc(struct values *values, size_t i)
{
    const struct adhoc_event *event = &values->source->adhoc.events.items[i];
    put_number(values, i);
    put_number(values, event->process);
    put_text(values, event->name);
    put_number(values, event->events);
    put_number(values, event->weight);
    return true;
}

static bool fill_adhoc_frame(struct values *values, size_t i)
{
    const struct source *source = values->source;
    const uint32_t owner = source->framed.items[i];
    if (owner == REC_NONE) {
        return false; // merged into another entry
    }
    put_number(values, owner);
    put_number(values, i - source->adhoc.events.items[owner].first);
    put_number(values, source->adhoc.locations.items[i]);
    put_number(values, source->adhoc.inlined.items[i] != 0);
    return true;
}

// --- writing -----------------------------------------------------------------------------------

struct table {
    const char *insert;
    bool (*fill)(struct values *values, size_t i);
    size_t count;
};

static MUST_USE enum err
fill_table(struct source *source, sqlite3 *database, const struct table *table)
{
    struct values values = {.source = source};
    if (sqlite3_prepare_v2(database, table->insert, -1, &values.statement, NULL) != SQLITE_OK) {
        return ERR_NO_MEMORY;
    }
    int status = SQLITE_DONE;
    for (size_t i = 0; i < table->count && status == SQLITE_DONE; i++) {
        values.next = 1;
        if (table->fill(&values, i)) {
            status = sqlite3_step(values.statement);
        }
        (void)sqlite3_reset(values.statement); // repeats the result of sqlite3_step
    }
    (void)sqlite3_finalize(values.statement); // repeats the result of sqlite3_step
    TRY(strbuf_result(&source->scratch));
    return status == SQLITE_DONE ? ERR_OK : ERR_NO_MEMORY;
}

static MUST_USE enum err write_tables(struct source *source, sqlite3 *database)
{
    const struct recording *from = source->recording;
    const struct export_view *view = source->view;
    const struct code_index *code = &source->profile->code;
    const struct table tables[] = {
        {"INSERT INTO run VALUES(?,?)", fill_run, RUN_ENTRIES},
        {"INSERT INTO processes VALUES(?,?,?,?,?,?,?,?,?,?)", fill_process, from->process_count},
        {"INSERT INTO threads VALUES(?,?,?,?,?,?,?)", fill_thread, from->thread_count},
        {"INSERT INTO modules VALUES(?,?,?,?)", fill_module, from->module_count},
        {"INSERT INTO functions VALUES(?,?,?)", fill_function, code->functions.len},
        {"INSERT INTO frames VALUES(?,?,?,?,?)", fill_frame, code->locations.len},
        {"INSERT INTO stacks VALUES(?,?,?,?,?)", fill_stack, view->tree.nodes.len},
        {"INSERT INTO rows VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", fill_row,
         view->selection.rows.len},
        {"INSERT INTO slices VALUES(?,?,?,?,?,?,?,?,?)", fill_slice, source->timeline.points.len},
        {"INSERT INTO series VALUES(?,?,?,?,?,?,?)", fill_cell, from->cell_count},
        {"INSERT INTO sizes VALUES(?,?,?,?,?)", fill_size, from->size_bucket_count},
        {"INSERT INTO lifetimes VALUES(?,?,?,?,?)", fill_lifetime, from->lifetime_bucket_count},
        {"INSERT INTO cohorts VALUES(?,?,?,?,?)", fill_cohort, from->cohort_count},
        {"INSERT INTO blocks VALUES(?,?,?,?,?,?,?,?)", fill_block, from->block_count},
        {"INSERT INTO memory VALUES(?,?,?,?,?,?,?,?,?)", fill_memory, from->rss_sample_count},
        {"INSERT INTO adhoc VALUES(?,?,?,?,?)", fill_adhoc, source->adhoc.events.len},
        {"INSERT INTO adhoc_frames VALUES(?,?,?,?)", fill_adhoc_frame, source->framed.len},
    };
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        TRY(fill_table(source, database, &tables[i]));
    }
    return ERR_OK;
}

static MUST_USE enum err collect_run(struct source *source)
{
    struct summary summary;
    const struct sampling sampling = sampling_of(source->recording);
    TRY(summary_build(&source->view->selection, &summary));
    const struct profile *profile = source->profile;
    const struct rec_meta *meta = &source->recording->meta;
    const struct run_entry entries[RUN_ENTRIES] = {
        {"tool_version", profile_string(profile, meta->tool_version), 0},
        {"source_format", profile_string(profile, meta->source_format), 0},
        {"state", profile_state_name(profile), 0},
        {"host", profile_string(profile, meta->host), 0},
        {"kernel", profile_string(profile, meta->kernel), 0},
        {"libc", profile_string(profile, meta->libc), 0},
        {"program", profile_string(profile, meta->program), 0},
        {"command_line", profile_string(profile, meta->command_line), 0},
        {"pid", NULL, meta->pid},
        {"start_unix_ns", NULL, meta->start_unix_ns},
        {"runtime_ms", NULL, meta->runtime_ms},
        {"peak_time_ms", NULL, summary.peak_time_ms},
        {"peak_error_bytes", NULL, summary.peak_error_bytes},
        {"slice_ms", NULL, source->timeline.slice_ms},
        {"is_estimate", NULL, sampling.is_sampled},
        {"interval_bytes", NULL, sampling.bytes},
    };
    memcpy(source->run, entries, sizeof(entries));
    return ERR_OK;
}

static MUST_USE enum err collect_adhoc(struct source *source)
{
    struct adhoc_list *list = &source->adhoc;
    TRY(adhoc_collect(source->profile, ADHOC_BY_PROCESS, list));
    TRY(u32_vec_resize(&source->framed, list->locations.len));
    for (size_t i = 0; i < source->framed.len; i++) {
        source->framed.items[i] = REC_NONE;
    }
    for (size_t i = 0; i < list->events.len; i++) {
        const struct adhoc_event *event = &list->events.items[i];
        for (size_t at = 0; at < event->count; at++) {
            source->framed.items[event->first + at] = (uint32_t)i;
        }
    }
    return ERR_OK;
}

static MUST_USE enum err source_collect(struct source *source)
{
    TRY(collect_adhoc(source));
    TRY(cut_timeline_build(&source->view->selection, &source->timeline));
    TRY(collect_run(source));
    TRY(u32_vec_resize(&source->row_marks, source->recording->row_count));
    for (size_t i = 0; i < source->view->selection.rows.len; i++) {
        source->row_marks.items[source->view->selection.rows.items[i]] = 1;
    }
    return ERR_OK;
}

static void source_release(struct source *source)
{
    cut_timeline_release(&source->timeline);
    adhoc_release(&source->adhoc);
    u32_vec_release(&source->framed);
    u32_vec_release(&source->row_marks);
    strbuf_release(&source->scratch);
}

static MUST_USE enum err write_database(struct source *source, sqlite3 *database, FILE *out)
{
    if (sqlite3_exec(database, sqlite_tables, NULL, NULL, NULL) != SQLITE_OK) {
        return ERR_NO_MEMORY;
    }
    TRY(write_tables(source, database));
    if (sqlite3_exec(database, sqlite_views, NULL, NULL, NULL) != SQLITE_OK) {
        return ERR_NO_MEMORY;
    }
    sqlite3_int64 bytes = 0;
    const unsigned char *image =
        sqlite3_serialize(database, "main", &bytes, SQLITE_SERIALIZE_NOCOPY);
    if (image == NULL) {
        return ERR_NO_MEMORY;
    }
    (void)fwrite(image, 1, (size_t)bytes, out); // the code that closes the stream finds its error
    return ERR_OK;
}

static enum err write_sqlite(const struct export_view *view, FILE *out)
{
    CLEANUP(source_release)
    struct source source = {
        .view = view, .profile = view->profile, .recording = &view->profile->recording};
    TRY(source_collect(&source));
    // SQLite's default limit for a database in memory is one GiB.
    sqlite3_int64 limit = INT64_MAX;
    (void)sqlite3_config(SQLITE_CONFIG_MEMDB_MAXSIZE, limit); // only unusual builds refuse it
    sqlite3 *database = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
    enum err problem = ERR_NO_MEMORY;
    if (sqlite3_open_v2("file:cairn?vfs=memdb", &database, flags, NULL) == SQLITE_OK) {
        problem = write_database(&source, database, out);
    }
    (void)sqlite3_close(database); // the database is discarded
    return problem;
}

const struct exporter exporter_sqlite = {
    .name = "sqlite",
    .file_suffix = ".sqlite",
    .help = "a database for SQL: stacks, rows, time slices, histograms, with views",
    .is_binary = true,
    .write = write_sqlite,
};
