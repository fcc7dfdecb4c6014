// SPDX-License-Identifier: MIT
#include "profile/compare/row_changes.h"

#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

void row_sums_release(struct row_sums *history)
{
    map_u64_release(&history->indices);
    row_change_vec_release(&history->sums);
}

static uint64_t hash_words(const uint64_t *words, size_t count)
{
    return XXH3_64bits(words, count * sizeof(words[0]));
}

static uint64_t hash_string(const struct profile *profile, rec_string string)
{
    const char *text = profile_string(profile, string);
    return XXH3_64bits(text, strlen(text));
}

// Hash the stacks, by node: each with the hash of its parent, which comes first.
static MUST_USE enum err hash_nodes(const struct profile *profile, struct u64_vec *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(u64_vec_release) struct u64_vec modules = {0};
    TRY(u64_vec_resize(&modules, recording->module_count));
    TRY(u64_vec_resize(out, recording->node_count));
    for (size_t i = 0; i < recording->module_count; i++) {
        const uint64_t words[] = {hash_string(profile, recording->modules[i].path),
                                  hash_string(profile, recording->modules[i].build_id)};
        modules.items[i] = hash_words(words, ARRAY_LEN(words));
    }
    for (size_t i = 1; i < recording->node_count; i++) {
        const struct rec_node *node = &recording->nodes[i];
        const struct rec_frame *frame = &recording->frames[node->frame];
        const uint64_t words[] = {
            node->parent < i ? out->items[node->parent] : 0,
            frame->module != REC_NONE ? modules.items[frame->module] : 0,
            frame->offset,
            frame->flags,
        };
        out->items[i] = hash_words(words, ARRAY_LEN(words));
    }
    return ERR_OK;
}

static uint64_t
hash_row(const struct recording *recording, const struct rec_row *row, const struct u64_vec *nodes)
{
    const struct rec_thread *thread = &recording->threads[row->thread];
    const struct rec_process *process = &recording->processes[thread->process];
    const uint64_t words[] = {nodes->items[row->node], thread->thread_id, process->pid,
                              process->epoch};
    return hash_words(words, ARRAY_LEN(words));
}

// Add up the rows of equal content, and note the index of each row's sum.
static MUST_USE enum err add_rows(const struct recording *recording,
                                  const struct u64_vec *nodes,
                                  struct row_sums *out,
                                  struct u64_vec *keys)
{
    TRY(u64_vec_resize(keys, recording->row_count));
    for (size_t i = 0; i < recording->row_count; i++) {
        const struct rec_row *row = &recording->rows[i];
        const uint64_t key = hash_row(recording, row, nodes);
        uint32_t index;
        TRY(map_u64_number(&out->indices, key, out->sums.len, &index));
        if (index == out->sums.len) {
            TRY(row_change_vec_push(&out->sums, (struct row_change){0}));
        }
        out->sums.items[index].allocations += row->allocations;
        out->sums.items[index].allocated_bytes += row->allocated_bytes;
        keys->items[i] = key;
    }
    return ERR_OK;
}

// Subtract as much of `*rest` as the value has.
static void take_off(uint64_t *value, uint64_t *rest)
{
    const uint64_t taken = min_u64(*value, *rest);
    *value -= taken;
    *rest -= taken;
}

static void take_off_both(struct row_change *change, struct row_change *rest)
{
    take_off(&change->allocations, &rest->allocations);
    take_off(&change->allocated_bytes, &rest->allocated_bytes);
}

// Subtract what was there before. What remains of the earlier sums belongs to rows that were
// merged into others: it is subtracted from those that grew.
static void subtract_history(struct row_sums *history,
                             const struct u64_vec *keys,
                             struct row_change_vec *changes)
{
    struct row_change merged = {0};
    for (size_t i = 0; i < changes->len; i++) {
        const uint32_t *index = map_u64_find(&history->indices, keys->items[i]);
        if (index != NULL) {
            take_off_both(&changes->items[i], &history->sums.items[*index]);
        }
    }
    for (size_t i = 0; i < history->sums.len; i++) {
        merged.allocations += history->sums.items[i].allocations;
        merged.allocated_bytes += history->sums.items[i].allocated_bytes;
    }
    for (size_t i = 0; i < changes->len; i++) {
        take_off_both(&changes->items[i], &merged);
    }
}

enum err row_sums_advance(struct row_sums *history,
                          const struct profile *profile,
                          struct row_change_vec *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(u64_vec_release) struct u64_vec nodes = {0};
    CLEANUP(u64_vec_release) struct u64_vec keys = {0};
    CLEANUP(row_sums_release) struct row_sums now = {0};
    CLEANUP(row_change_vec_release) struct row_change_vec changes = {0};
    TRY(hash_nodes(profile, &nodes));
    TRY(add_rows(recording, &nodes, &now, &keys));
    TRY(row_change_vec_resize(&changes, recording->row_count));
    for (size_t i = 0; i < changes.len; i++) {
        changes.items[i] =
            (struct row_change){recording->rows[i].allocations, recording->rows[i].allocated_bytes};
    }
    subtract_history(history, &keys, &changes);
    row_sums_release(history);
    *history = TAKE(now);
    *out = TAKE(changes);
    return ERR_OK;
}
