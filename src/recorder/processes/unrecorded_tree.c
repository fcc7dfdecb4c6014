// SPDX-License-Identifier: MIT
#include "recorder/processes/unrecorded_tree.h"

#include "aggregate/aggregator.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/process_search.h"

#define WALK_NS    20000000u
#define WALK_SHARE 50u // the most that walks take of a processor's time

void unrecorded_tree_release(struct unrecorded_tree *tree)
{
    tree_process_vec_release(&tree->processes);
    map_u64_release(&tree->known);
}

static enum err follow(struct unrecorded_tree *tree, const struct tree_process *process)
{
    if (process->pid <= 0 || tree->processes.len >= TREE_PROCESSES_MAX ||
        map_u64_find(&tree->known, (uint64_t)process->pid) != NULL) {
        return ERR_OK;
    }
    TRY(tree_process_vec_reserve(&tree->processes, 1));
    TRY(map_u64_put(&tree->known, (uint64_t)process->pid, 1));
    return tree_process_vec_push(&tree->processes, *process);
}

// Visit one process. False: it has ended.
static enum err visit(struct unrecorded_tree *tree, size_t index, bool *is_there)
{
    const struct tree_process process = tree->processes.items[index]; // the vector may move
    CLEANUP(u32_vec_release) struct u32_vec children = {0};
    const enum err err = process_search_children(process.pid, &children);
    *is_there = err != ERR_NOT_FOUND;
    for (size_t i = 0; i < children.len && !process.is_recorded; i++) {
        const struct tree_process child = {
            .exec = process.exec, .pid = (pid_t)children.items[i], .was_seen = true};
        TRY(follow(tree, &child));
    }
    return *is_there && err != ERR_IO ? err : ERR_OK; // it cannot be read now
}

static bool has_joined(struct aggregator *aggregator, pid_t pid)
{
    const uint32_t *index = map_u64_find(&aggregator->last_of_pid, (uint64_t)pid);
    return index != NULL && !aggregator->processes.items[*index]->is_ended;
}

static enum err
weigh(struct unrecorded_list *list, struct aggregator *aggregator, struct tree_process *process)
{
    if (process->is_root || process->is_counted || process->is_recorded) {
        return ERR_OK;
    }
    if (has_joined(aggregator, process->pid)) {
        process->is_recorded = true;
        return ERR_OK;
    }
    if (process->was_seen) { // for the first time
        process->was_seen = false;
        return ERR_OK;
    }
    process->is_counted = true;
    return unrecorded_list_add_descendants(list, aggregator, &process->exec, 1);
}

static enum err
walk(struct unrecorded_tree *tree, struct unrecorded_list *list, struct aggregator *aggregator)
{
    for (size_t i = 0; i < tree->processes.len;) { // it grows meanwhile
        bool is_there = false;
        TRY(visit(tree, i, &is_there));
        if (is_there) {
            TRY(weigh(list, aggregator, &tree->processes.items[i]));
            i++;
        } else {
            (void)map_u64_remove(&tree->known, (uint64_t)tree->processes.items[i].pid);
            tree->processes.items[i] = tree->processes.items[--tree->processes.len];
        }
    }
    return ERR_OK;
}

enum err unrecorded_tree_round(struct unrecorded_tree *tree,
                               struct unrecorded_list *list,
                               struct aggregator *aggregator,
                               uint64_t now_ns)
{
    for (size_t i = 0; i < list->fresh.len; i++) {
        const struct unrecorded_exec *exec = &list->fresh.items[i];
        const struct tree_process root = {.exec = *exec, .pid = exec->pid, .is_root = true};
        TRY(follow(tree, &root));
    }
    unrecorded_exec_vec_clear(&list->fresh);
    if (tree->processes.len == 0 || now_ns < tree->next_walk_ns) {
        return ERR_OK;
    }
    const uint64_t begun_ns = clock_monotonic_ns();
    TRY(walk(tree, list, aggregator));
    const uint64_t rest_ns = (clock_monotonic_ns() - begun_ns) * WALK_SHARE;
    tree->next_walk_ns = now_ns + (rest_ns > WALK_NS ? rest_ns : WALK_NS);
    return ERR_OK;
}
