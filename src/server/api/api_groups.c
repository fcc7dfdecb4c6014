// SPDX-License-Identifier: MIT
// api_groups: /api/v1/processes, /threads and /modules: who shares in the selection.
#include "base/compiler.h"
#include "profile/accuracy/coverage.h"
#include "profile/tables/profile_json.h"
#include "profile/tables/summary.h"
#include "server/api/api.h"
#include "server/columns/columns.h"

// A column: what an entry of the recording's table says. `id` is REC_NONE for code without a file.
struct group_column {
    const char *key;
    void (*write)(struct json_writer *w, const struct profile *profile, uint32_t id);
};

// A column that is one number of a struct, or one text.
#define NUMBER_COLUMN(noun, table, field)                                                    \
    static void write_##noun##_##field(struct json_writer *w, const struct profile *profile, \
                                       uint32_t id)                                          \
    {                                                                                        \
        json_u64(w, profile->recording.table[id].field);                                     \
    }
#define TEXT_COLUMN(noun, table, field)                                                      \
    static void write_##noun##_##field(struct json_writer *w, const struct profile *profile, \
                                       uint32_t id)                                          \
    {                                                                                        \
        json_string(w, profile_string(profile, profile->recording.table[id].field));         \
    }
#define FLAG_COLUMN(name, flag)                                                                 \
    static void write_##name(struct json_writer *w, const struct profile *profile, uint32_t id) \
    {                                                                                           \
        json_bool(w, (profile->recording.processes[id].flags & (flag)) != 0);                   \
    }

NUMBER_COLUMN(process, processes, pid)
NUMBER_COLUMN(process, processes, parent_pid)
NUMBER_COLUMN(process, processes, epoch)
NUMBER_COLUMN(process, processes, start_ms)
NUMBER_COLUMN(process, processes, end_ms)
NUMBER_COLUMN(process, processes, peak_bytes)
NUMBER_COLUMN(process, processes, peak_rss_bytes)
TEXT_COLUMN(process, processes, executable)
TEXT_COLUMN(process, processes, command_line)
TEXT_COLUMN(process, processes, allocator)
FLAG_COLUMN(forked, REC_PROCESS_FORKED)
FLAG_COLUMN(execed, REC_PROCESS_EXECED)
FLAG_COLUMN(own_allocator, REC_PROCESS_OWN_ALLOCATOR)

static void write_wait_status(struct json_writer *w, const struct profile *profile, uint32_t id)
{
    profile_json_wait_status(w, profile->recording.processes[id].exit_status);
}

static const struct group_column process_columns[] = {
    {"pid", write_process_pid},
    {"parent_pid", write_process_parent_pid},
    {"epoch", write_process_epoch},
    {"executable", write_process_executable},
    {"command_line", write_process_command_line},
    {"allocator", write_process_allocator},
    {"forked", write_forked},
    {"execed", write_execed},
    {"own_allocator", write_own_allocator},
    {"start_ms", write_process_start_ms},
    {"end_ms", write_process_end_ms},
    {"wait_status", write_wait_status},
    {"process_peak_bytes", write_process_peak_bytes},
    {"peak_rss_bytes", write_process_peak_rss_bytes},
};

NUMBER_COLUMN(thread, threads, process)
NUMBER_COLUMN(thread, threads, thread_id)
NUMBER_COLUMN(thread, threads, merged_count)
NUMBER_COLUMN(thread, threads, start_ms)
NUMBER_COLUMN(thread, threads, end_ms)
TEXT_COLUMN(thread, threads, name)

static void write_thread_pid(struct json_writer *w, const struct profile *profile, uint32_t id)
{
    json_u64(w, profile->recording.processes[profile->recording.threads[id].process].pid);
}

static const struct group_column thread_columns[] = {
    {"process", write_thread_process},
    {"thread_id", write_thread_thread_id},
    {"pid", write_thread_pid},
    {"name", write_thread_name},
    {"merged_count", write_thread_merged_count},
    {"start_ms", write_thread_start_ms},
    {"end_ms", write_thread_end_ms},
};

static const char *module_path_of(const struct profile *profile, uint32_t id)
{
    return id == REC_NONE ? "" : profile_string(profile, profile->recording.modules[id].path);
}

static void write_module_path(struct json_writer *w, const struct profile *profile, uint32_t id)
{
    json_string(w, module_path_of(profile, id));
}

static void write_module_name(struct json_writer *w, const struct profile *profile, uint32_t id)
{
    json_string(w, path_file_name(module_path_of(profile, id)));
}

static void write_build_id(struct json_writer *w, const struct profile *profile, uint32_t id)
{
    bool is_file = id != REC_NONE;
    json_string(w, is_file ? profile_string(profile, profile->recording.modules[id].build_id) : "");
}

static void write_symbol_source(struct json_writer *w, const struct profile *profile, uint32_t id)
{
    json_string(w, id != REC_NONE ? profile_module_source(profile, id) : "");
}

static void write_symbol_advice(struct json_writer *w, const struct profile *profile, uint32_t id)
{
    json_string(w, id != REC_NONE ? profile_module_advice(profile, id) : "");
}

static const struct group_column module_columns[] = {
    {"path", write_module_path},
    {"name", write_module_name},
    {"build_id", write_build_id},
    {"symbol_source", write_symbol_source},
    {"symbol_advice", write_symbol_advice},
};

static void write_columns(const struct question *q,
                          const struct group_column *columns,
                          size_t column_count,
                          const struct group_vec *groups,
                          struct json_writer *w)
{
    for (size_t c = 0; c < column_count; c++) {
        column_begin(w, columns[c].key);
        for (size_t i = 0; i < groups->len; i++) {
            columns[c].write(w, q->profile, groups->items[i].id);
        }
        column_end(w);
    }
}

static MUST_USE enum err
write_costs(const struct question *q, const struct group_vec *groups, struct json_writer *w)
{
    CLEANUP(costs_vec_release) struct costs_vec costs = {0};
    TRY(costs_vec_resize(&costs, groups->len));
    for (size_t i = 0; i < groups->len; i++) {
        costs.items[i] = groups->items[i].costs;
    }
    costs_table(w, "costs", q->costs, costs.items, costs.len);
    return ERR_OK;
}

enum err api_processes(struct question *q, struct json_writer *w)
{
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    TRY(groups_build(&q->selection, GROUP_BY_PROCESS, &groups));
    table_begin(w, "processes", groups.len);
    write_columns(q, process_columns, ARRAY_LEN(process_columns), &groups, w);
    TRY(write_costs(q, &groups, w));
    table_end(w);
    return ERR_OK;
}

enum err api_threads(struct question *q, struct json_writer *w)
{
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    TRY(groups_build(&q->selection, GROUP_BY_THREAD, &groups));
    table_begin(w, "threads", groups.len);
    write_columns(q, thread_columns, ARRAY_LEN(thread_columns), &groups, w);
    TRY(write_costs(q, &groups, w));
    table_end(w);
    return ERR_OK;
}

static MUST_USE enum err
write_coverage(const struct question *q, const struct group_vec *groups, struct json_writer *w)
{
    static const struct {
        const char *key;
        size_t offset; // in struct module_coverage
    } columns[] = {
        {"frames", offsetof(struct module_coverage, frames)},
        {"frames_with_function", offsetof(struct module_coverage, with_function)},
        {"frames_with_line", offsetof(struct module_coverage, with_line)},
    };
    CLEANUP(module_coverage_vec_release) struct module_coverage_vec coverage = {0};
    TRY(coverage_build(q->profile, &coverage));
    for (size_t c = 0; c < ARRAY_LEN(columns); c++) {
        column_begin(w, columns[c].key);
        for (size_t i = 0; i < groups->len; i++) {
            uint32_t id = groups->items[i].id;
            const char *entry =
                (const char *)&coverage.items[id == REC_NONE ? coverage.len - 1 : id];
            json_u64(w, *(const uint64_t *)(const void *)(entry + columns[c].offset));
        }
        column_end(w);
    }
    return ERR_OK;
}

enum err api_modules(struct question *q, struct json_writer *w)
{
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    TRY(groups_build(&q->selection, GROUP_BY_MODULE, &groups));
    table_begin(w, "modules", groups.len);
    write_columns(q, module_columns, ARRAY_LEN(module_columns), &groups, w);
    TRY(write_coverage(q, &groups, w));
    TRY(write_costs(q, &groups, w));
    table_end(w);
    return ERR_OK;
}
