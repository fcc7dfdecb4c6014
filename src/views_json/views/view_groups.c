// SPDX-License-Identifier: MIT
// view_groups: the selection by process, thread or module, and by named groups.
#include "base/compiler.h"
#include "host/os/file.h"
#include "profile/accuracy/coverage.h"
#include "views_json/views/view_parts.h"
#include "views_json/views/views.h"

struct process_row {
    uint32_t number; // in the recording
    struct rec_process process;
    bool forked;
    bool execed;
    bool own_allocator;
    bool attached;
    bool killed;
    uint64_t peak_bytes; // VALUE_UNKNOWN
    bool runtime_objects;
    bool ended;
    uint64_t end_error_ms; // VALUE_UNKNOWN
    struct costs costs;
};

DEFINE_VEC(process_row_vec, struct process_row);

static void write_wait_status(struct view *view, const void *row)
{
    const struct process_row *process = row;
    view_wait_status(view, process->process.exit_status);
}

static const struct column process_columns[] = {
    COLUMN_AS("process", CELL_U32, process_row, number),
    COLUMN_AS("pid", CELL_U32, process_row, process.pid),
    COLUMN_AS("parent_pid", CELL_U32, process_row, process.parent_pid),
    COLUMN_AS("epoch", CELL_U32, process_row, process.epoch),
    COLUMN_AS("executable", CELL_STRING, process_row, process.executable),
    COLUMN_AS("command_line", CELL_STRING, process_row, process.command_line),
    COLUMN_AS("allocator", CELL_STRING, process_row, process.allocator),
    COLUMN(CELL_BOOL, process_row, forked),
    COLUMN(CELL_BOOL, process_row, execed),
    COLUMN(CELL_BOOL, process_row, own_allocator),
    COLUMN(CELL_BOOL, process_row, attached),
    COLUMN(CELL_BOOL, process_row, killed),
    COLUMN(CELL_BOOL, process_row, ended),
    COLUMN_AS("killed_threads", CELL_U64, process_row, process.killed_threads),
    COLUMN_AS("runtime", CELL_STRING, process_row, process.runtime),
    COLUMN(CELL_BOOL, process_row, runtime_objects),
    COLUMN_AS("start_ms", CELL_U64, process_row, process.start_ms),
    COLUMN_AS("end_ms", CELL_U64, process_row, process.end_ms),
    COLUMN(CELL_OPTIONAL, process_row, end_error_ms),
    COLUMN_WRITTEN("wait_status", write_wait_status),
    COLUMN_AS("process_peak_bytes", CELL_OPTIONAL, process_row, peak_bytes),
    COLUMN_AS("peak_rss_bytes", CELL_U64, process_row, process.peak_rss_bytes),
    COLUMN(CELL_COSTS, process_row, costs),
    COLUMN_ERRORS("errors", CELL_ERRORS, process_row, costs),
};

enum err view_processes(struct view *view)
{
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    CLEANUP(process_row_vec_release) struct process_row_vec rows = {0};
    const bool has_peak = profile_knows(view->profile, COST_PEAK_BYTES);
    TRY(groups_build(view->selection, GROUP_BY_PROCESS, &groups));
    for (size_t i = 0; i < groups.len; i++) {
        const struct rec_process *process = &view->profile->recording.processes[groups.items[i].id];
        const struct process_row row = {
            .number = groups.items[i].id,
            .process = *process,
            .forked = (process->flags & REC_PROCESS_FORKED) != 0,
            .execed = (process->flags & REC_PROCESS_EXECED) != 0,
            .own_allocator = (process->flags & REC_PROCESS_OWN_ALLOCATOR) != 0,
            .attached = (process->flags & REC_PROCESS_ATTACHED) != 0,
            .killed = (process->flags & REC_PROCESS_KILLED) != 0,
            .peak_bytes = has_peak ? process->peak_bytes : VALUE_UNKNOWN,
            .runtime_objects = (process->flags & REC_PROCESS_OBJECTS) != 0,
            .end_error_ms = process->end_error_ms == 0 ? VALUE_UNKNOWN : process->end_error_ms - 1,
            .ended = profile_process_has_ended(view->profile, groups.items[i].id),
            .costs = groups.items[i].costs,
        };
        TRY(process_row_vec_push(&rows, row));
    }
    view_table(view, &TABLE("processes", process_columns, rows.items, rows.len));
    return ERR_OK;
}

struct thread_row {
    uint32_t number; // in the recording
    struct rec_thread thread;
    uint32_t pid;
    struct costs costs;
};

DEFINE_VEC(thread_row_vec, struct thread_row);

static const struct column thread_columns[] = {
    COLUMN_AS("thread", CELL_U32, thread_row, number),
    COLUMN_AS("process", CELL_U32, thread_row, thread.process),
    COLUMN_AS("thread_id", CELL_U32, thread_row, thread.thread_id),
    COLUMN(CELL_U32, thread_row, pid),
    COLUMN_AS("name", CELL_STRING, thread_row, thread.name),
    COLUMN_AS("merged_count", CELL_U32, thread_row, thread.merged_count),
    COLUMN_AS("start_ms", CELL_U64, thread_row, thread.start_ms),
    COLUMN_AS("end_ms", CELL_U64, thread_row, thread.end_ms),
    COLUMN(CELL_COSTS, thread_row, costs),
    COLUMN_ERRORS("errors", CELL_ERRORS, thread_row, costs),
};

enum err view_threads(struct view *view)
{
    const struct recording *recording = &view->profile->recording;
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    CLEANUP(thread_row_vec_release) struct thread_row_vec rows = {0};
    TRY(groups_build(view->selection, GROUP_BY_THREAD, &groups));
    for (size_t i = 0; i < groups.len; i++) {
        const struct rec_thread *thread = &recording->threads[groups.items[i].id];
        const struct thread_row row = {.number = groups.items[i].id,
                                       .thread = *thread,
                                       .pid = recording->processes[thread->process].pid,
                                       .costs = groups.items[i].costs};
        TRY(thread_row_vec_push(&rows, row));
    }
    view_table(view, &TABLE("threads", thread_columns, rows.items, rows.len));
    return ERR_OK;
}

struct module_row {
    const char *path;
    const char *name;
    const char *build_id;
    bool is_executable;
    struct module_coverage coverage;
    const char *symbol_source;
    const char *symbol_advice;
    struct costs costs;
};

DEFINE_VEC(module_row_vec, struct module_row);

#define MODULE_FACTS                                                                           \
    COLUMN(CELL_TEXT, module_row, path), COLUMN(CELL_TEXT, module_row, name),                  \
        COLUMN(CELL_TEXT, module_row, build_id), COLUMN(CELL_BOOL, module_row, is_executable), \
        COLUMN_AS("frames", CELL_U64, module_row, coverage.frames),                            \
        COLUMN_AS("frames_with_function", CELL_U64, module_row, coverage.with_function),       \
        COLUMN_AS("frames_with_line", CELL_U64, module_row, coverage.with_line),               \
        COLUMN(CELL_TEXT, module_row, symbol_source), COLUMN(CELL_TEXT, module_row, symbol_advice)

static const struct column module_facts[] = {MODULE_FACTS};

static const struct column module_columns[] = {
    MODULE_FACTS,
    COLUMN(CELL_COSTS, module_row, costs),
    COLUMN_ERRORS("errors", CELL_ERRORS, module_row, costs),
};

// Add a module. `id` is REC_NONE for code outside any file, whose coverage is the last entry.
static void add_module(const struct profile *profile,
                       const struct module_coverage_vec *coverage,
                       const struct group *group,
                       struct module_row_vec *out)
{
    struct module_row row = {.path = "",
                             .name = "",
                             .build_id = "",
                             .symbol_source = "",
                             .symbol_advice = "",
                             .coverage = coverage->items[coverage->len - 1],
                             .costs = group->costs};
    if (group->id != REC_NONE) {
        const struct rec_module *module = &profile->recording.modules[group->id];
        row.path = profile_string(profile, module->path);
        row.name = path_file_name(row.path);
        row.build_id = profile_string(profile, module->build_id);
        row.is_executable = module->is_executable != 0;
        row.coverage = coverage->items[group->id];
        row.symbol_source = profile_module_source(profile, group->id);
        row.symbol_advice = profile_module_advice(profile, group->id);
    }
    module_row_vec_add(out, row);
}

static MUST_USE enum err
write_modules(struct view *view, const struct group_vec *groups, bool has_costs)
{
    CLEANUP(module_coverage_vec_release) struct module_coverage_vec coverage = {0};
    CLEANUP(module_row_vec_release) struct module_row_vec rows = {0};
    TRY(coverage_build(view->profile, &coverage));
    for (size_t i = 0; i < groups->len; i++) {
        add_module(view->profile, &coverage, &groups->items[i], &rows);
    }
    const struct table facts = TABLE("modules", module_facts, rows.items, rows.len);
    const struct table whole = TABLE("modules", module_columns, rows.items, rows.len);
    view_table(view, has_costs ? &whole : &facts);
    return ERR_OK;
}

enum err view_modules(struct view *view)
{
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    TRY(groups_build(view->selection, GROUP_BY_MODULE, &groups));
    return write_modules(view, &groups, true);
}

enum err view_health(struct view *view)
{
    CLEANUP(group_vec_release) struct group_vec all = {0};
    view_damage(view);
    view_sampling(view);
    view_counters(view);
    for (uint32_t id = 0; id < view->profile->recording.module_count; id++) {
        TRY(group_vec_push(&all, (struct group){.id = id}));
    }
    return write_modules(view, &all, false);
}

// Groups by a name

struct group_row {
    size_t index; // in the groups
    const struct cost_groups *groups;
    struct costs costs;
};

DEFINE_VEC(group_row_vec, struct group_row);

static void
write_group_text(struct view *view,
                 const void *row,
                 void (*append)(const struct cost_groups *groups, size_t index, struct strbuf *out))
{
    const struct group_row *group = row;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    append(group->groups, group->index, &text);
    json_value_string(view->w, strbuf_text(&text));
}

static void write_group_name(struct view *view, const void *row)
{
    write_group_text(view, row, cost_group_append_name);
}

static void write_group_detail(struct view *view, const void *row)
{
    write_group_text(view, row, cost_group_append_detail);
}

static const struct column group_columns[] = {
    COLUMN_WRITTEN("name", write_group_name),
    COLUMN_WRITTEN("detail", write_group_detail),
    COLUMN(CELL_COSTS, group_row, costs),
    COLUMN_ERRORS("errors", CELL_ERRORS, group_row, costs),
};

enum err view_groups(struct view *view, enum cost_group_by by)
{
    CLEANUP(cost_groups_release) struct cost_groups groups = {0};
    CLEANUP(group_row_vec_release) struct group_row_vec rows = {0};
    TRY(cost_groups_build(view->selection, by, view->sort, &groups));
    for (size_t i = 0; i < groups.items.len; i++) {
        TRY(group_row_vec_push(&rows, (struct group_row){i, &groups, groups.items.items[i].costs}));
    }
    json_key_string(view->w, "by", cost_group_by_name(by));
    view_cost_keys(view, "unavailable", groups.unknown);
    struct table table = TABLE("groups", group_columns, rows.items, rows.len);
    table.unknown = groups.unknown;
    view_table(view, &table);
    return ERR_OK;
}
