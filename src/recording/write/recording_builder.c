// SPDX-License-Identifier: MIT
#include "recording/write/recording_builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "recording/format/recording_owner.h"

enum err recording_builder_init(struct recording_builder *b)
{
    return nodes_vec_push(&b->nodes, (struct rec_node){.parent = REC_NONE, .frame = REC_NONE});
}

void recording_builder_release(struct recording_builder *b)
{
#define X(type, name, count) name##_vec_release(&b->name);
    REC_TABLES(X)
#undef X
    string_table_release(&b->strings);
    map_u64_release(&b->module_of);
    map_u64_release(&b->node_of);
    map_u64_release(&b->row_of);
    *b = (struct recording_builder){0};
}

enum err recording_builder_string(struct recording_builder *b, const char *text, rec_string *out_id)
{
    return string_table_intern_text(&b->strings, text, out_id);
}

enum err recording_builder_process(struct recording_builder *b,
                                   uint32_t pid,
                                   const char *executable,
                                   uint32_t *out_process)
{
    struct rec_process process = {.pid = pid, .parent = REC_NONE, .exit_status = -1};
    if (b->processes.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    TRY(recording_builder_string(b, executable, &process.executable));
    TRY(processes_vec_push(&b->processes, process));
    *out_process = (uint32_t)b->processes.len - 1;
    return ERR_OK;
}

enum err recording_builder_thread(struct recording_builder *b,
                                  uint32_t process,
                                  uint32_t thread_id,
                                  const char *name,
                                  uint32_t *out_thread)
{
    struct rec_thread thread = {.process = process, .thread_id = thread_id, .merged_count = 1};
    if (b->threads.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    TRY(recording_builder_string(b, name, &thread.name));
    TRY(threads_vec_push(&b->threads, thread));
    *out_thread = (uint32_t)b->threads.len - 1;
    return ERR_OK;
}

enum err
recording_builder_module(struct recording_builder *b, const char *path, uint32_t *out_module)
{
    rec_string name;
    TRY(recording_builder_string(b, path, &name));
    return recording_builder_module_of(b, name, out_module);
}

enum err
recording_builder_module_of(struct recording_builder *b, rec_string path, uint32_t *out_module)
{
    if (map_u64_get(&b->module_of, path, out_module)) {
        return ERR_OK;
    }
    if (b->modules.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    const uint32_t module = (uint32_t)b->modules.len;
    TRY(modules_vec_push(&b->modules, (struct rec_module){.path = path}));
    TRY(map_u64_put(&b->module_of, path, module));
    *out_module = module;
    return ERR_OK;
}

static enum err push_symbol(struct recording_builder *b, const struct builder_symbol *from)
{
    struct rec_symbol symbol = {.line = from->line};
    TRY(recording_builder_string(b, from->function, &symbol.function));
    TRY(recording_builder_string(b, from->file, &symbol.file));
    return symbols_vec_push(&b->symbols, symbol);
}

enum err recording_builder_frame(struct recording_builder *b,
                                 uint32_t module,
                                 uint64_t offset,
                                 const struct builder_symbol *symbols,
                                 uint32_t symbol_count,
                                 uint32_t *out_frame)
{
    if (b->frames.len >= REC_NONE || b->symbols.len + symbol_count >= REC_NONE) {
        return ERR_LIMIT;
    }
    struct rec_frame frame = {.module = module,
                              .offset = offset,
                              .symbol_first = (uint32_t)b->symbols.len,
                              .symbol_count = symbol_count};
    for (uint32_t i = 0; i < symbol_count; i++) {
        TRY(push_symbol(b, &symbols[i]));
    }
    TRY(frames_vec_push(&b->frames, frame));
    *out_frame = (uint32_t)b->frames.len - 1;
    return ERR_OK;
}

enum err recording_builder_node(struct recording_builder *b,
                                uint32_t parent,
                                uint32_t frame,
                                uint32_t *out_node)
{
    TRY(nodes_vec_reserve(&b->nodes, 1));
    TRY(map_u64_number(&b->node_of, map_u64_pair(parent, frame), b->nodes.len, out_node));
    if (*out_node == b->nodes.len) {
        b->nodes.items[b->nodes.len++] = (struct rec_node){.parent = parent, .frame = frame};
    }
    return ERR_OK;
}

enum err recording_builder_row(struct recording_builder *b,
                               uint32_t thread,
                               uint32_t node,
                               uint32_t *out_row)
{
    TRY(rows_vec_reserve(&b->rows, 1));
    TRY(map_u64_number(&b->row_of, map_u64_pair(thread, node), b->rows.len, out_row));
    if (*out_row == b->rows.len) {
        b->rows.items[b->rows.len++] = (struct rec_row){.thread = thread, .node = node};
    }
    return ERR_OK;
}

void recording_builder_sum(struct recording_builder *b)
{
    rec_rows_add_up(b->rows.items, b->rows.len, &b->totals);
}

static int compare_cells(const void *left, const void *right)
{
    const struct rec_cell *a = left;
    const struct rec_cell *b = right;
    return order_u64(map_u64_pair(a->row, a->slice), map_u64_pair(b->row, b->slice));
}

static int compare_buckets(const void *left, const void *right)
{
    const struct rec_bucket *a = left;
    const struct rec_bucket *b = right;
    return order_u64(map_u64_pair(a->row, a->bucket), map_u64_pair(b->row, b->bucket));
}

static int compare_cohorts(const void *left, const void *right)
{
    const struct rec_cohort *a = left;
    const struct rec_cohort *b = right;
    return order_u64(map_u64_pair(a->row, a->born_slice), map_u64_pair(b->row, b->born_slice))
               ?: order_u64(a->freed_slice, b->freed_slice);
}

static void
sort_items(void *items, size_t count, size_t item_bytes, int (*compare)(const void *, const void *))
{
    // Most tables are already sorted; this check costs a fraction of sorting them again.
    size_t sorted = 1;
    while (sorted < count && compare((const char *)items + (sorted - 1) * item_bytes,
                                     (const char *)items + sorted * item_bytes) <= 0) {
        sorted++;
    }
    if (sorted < count) {
        qsort(items, count, item_bytes, compare);
    }
}

static enum err
take_strings(struct recording_builder *b, struct recording_owner *owner, struct rec_strings *out)
{
    size_t count = string_table_count(&b->strings);
    if (count >= REC_NONE) {
        return ERR_LIMIT;
    }
    size_t data_bytes = b->strings.texts.len + 1; // plus the empty string's zero
    owner->string_data = malloc(data_bytes);
    owner->string_offsets = calloc(count, sizeof(uint64_t));
    if (owner->string_data == NULL || owner->string_offsets == NULL) {
        return ERR_NO_MEMORY;
    }
    owner->string_data[0] = '\0';
    if (b->strings.texts.len > 0) {
        memcpy(owner->string_data + 1, b->strings.texts.items, b->strings.texts.len);
    }
    for (size_t id = 1; id < count; id++) {
        owner->string_offsets[id] = (uint64_t)b->strings.entries.items[id - 1].offset + 1;
    }
    *out = (struct rec_strings){.data = owner->string_data,
                                .offsets = owner->string_offsets,
                                .count = (uint32_t)count,
                                .data_bytes = data_bytes};
    return ERR_OK;
}

enum err recording_builder_finish(struct recording_builder *b, struct recording *out)
{
    struct recording_owner *owner = recording_owner_new();
    if (owner == NULL) {
        return ERR_NO_MEMORY;
    }
    struct recording made = {
        .meta = b->meta, .totals = b->totals, .slice_ms = b->slice_ms, .owner = owner};
    enum err err = take_strings(b, owner, &made.strings);
    if (err != ERR_OK) {
        recording_owner_free(owner);
        return err;
    }
    sort_items(b->cells.items, b->cells.len, sizeof(struct rec_cell), compare_cells);
    sort_items(b->size_buckets.items, b->size_buckets.len, sizeof(struct rec_bucket),
               compare_buckets);
    sort_items(b->lifetime_buckets.items, b->lifetime_buckets.len, sizeof(struct rec_bucket),
               compare_buckets);
    sort_items(b->cohorts.items, b->cohorts.len, sizeof(struct rec_cohort), compare_cohorts);
#define X(type, name, count)     \
    made.name = b->name.items;   \
    made.count = b->name.len;    \
    owner->name = b->name.items; \
    b->name = (struct name##_vec){0};
    REC_TABLES(X)
#undef X
    recording_builder_release(b);
    *out = made;
    return ERR_OK;
}
