// SPDX-License-Identifier: MIT
#include "recorder/processes/awaited_processes.h"

enum err awaited_processes_add(struct awaited_process_vec *awaited,
                               struct aggregator_process *process)
{
    const struct awaited_process added = {.process = process,
                                          .inner = pid_lookup_inner((pid_t)process->record.pid)};
    return awaited_process_vec_push(awaited, added);
}

pid_t awaited_processes_pid(const struct awaited_process_vec *awaited, struct inner_pid inner)
{
    for (size_t i = 0; i < awaited->len; i++) {
        const struct inner_pid *other = &awaited->items[i].inner;
        if (other->pid == inner.pid && other->pid_namespace == inner.pid_namespace) {
            return (pid_t)awaited->items[i].process->record.pid;
        }
    }
    return 0;
}

// Return its index, or the length.
static size_t index_of(const struct awaited_process_vec *awaited, pid_t pid)
{
    size_t i = 0;
    while (i < awaited->len && awaited->items[i].process->record.pid != (uint32_t)pid) {
        i++;
    }
    return i;
}

struct aggregator_process *awaited_processes_find(const struct awaited_process_vec *awaited,
                                                  pid_t pid)
{
    const size_t i = index_of(awaited, pid);
    return i < awaited->len ? awaited->items[i].process : NULL;
}

struct aggregator_process *awaited_processes_take(struct awaited_process_vec *awaited, pid_t pid)
{
    struct aggregator_process *process = awaited_processes_find(awaited, pid);
    if (process != NULL) {
        awaited->items[index_of(awaited, pid)] = awaited->items[--awaited->len];
    }
    return process;
}
