// SPDX-License-Identifier: MIT
#include "recorder/runtimes/process_runtimes.h"

#include <unistd.h>

#include "base/compiler.h"
#include "host/os/proc_file.h"
#include "recorder/processes/pid_lookup.h"

enum {
    ENVIRONMENT_BYTES_MAX = 4 << 20, // more than execve takes: a quarter of the stack's limit
};

void process_runtimes_release(struct process_runtimes *runtimes)
{
    runtime_files_release(&runtimes->files);
    u32_vec_release(&runtimes->waiting);
    u32_vec_release(&runtimes->news);
}

// Return the pid under which the process can be asked; 0: it has ended.
static pid_t pid_of(const struct aggregator_process *process, int session_memory)
{
    const pid_t pid = (pid_t)process->record.pid;
    return !process->is_ended && pid > 0 && pid_lookup_may_map(pid, session_memory) ? pid : 0;
}

static bool is_started_program(const struct rec_process *record)
{
    return (record->flags & REC_PROCESS_MAIN) != 0 && (record->flags & REC_PROCESS_ATTACHED) == 0 &&
           record->epoch == 0;
}

static bool is_open(const struct runtime *runtime, const struct rec_process *record, pid_t pid)
{
    CLEANUP(strbuf_release) struct strbuf environment = {0};
    if (runtime->setting == NULL) {
        return false;
    }
    const bool is_read =
        pid != 0 && proc_file_read(pid, "environ", ENVIRONMENT_BYTES_MAX, &environment);
    if (!is_read && is_started_program(record)) {
        strbuf_clear(&environment);
        (void)!proc_file_read(getpid(), "environ", ENVIRONMENT_BYTES_MAX, &environment);
    }
    return runtime_is_open(runtime, strbuf_bytes(&environment));
}

// Return the runtime that the process is known to have; NULL: none.
static enum err find(struct process_runtimes *runtimes,
                     const struct string_table *strings,
                     const struct aggregator_process *process,
                     int session_memory,
                     const struct runtime **out)
{
    const struct rec_process *record = &process->record;
    *out = record->runtime != 0 ? runtime_table_named(string_table_get(strings, record->runtime))
                                : NULL;
    if (record->runtime != 0 || record->executable == 0 ||
        runtime_files_get(&runtimes->files, record->executable, out)) {
        return ERR_OK;
    }
    return runtime_files_find(&runtimes->files, strings, record->executable,
                              pid_of(process, session_memory), out);
}

static enum err look(struct process_runtimes *runtimes,
                     struct aggregator *aggregator,
                     struct aggregator_process *process,
                     int session_memory)
{
    struct rec_process *record = &process->record;
    const struct runtime *runtime = NULL;
    TRY(find(runtimes, &aggregator->strings, process, session_memory, &runtime));
    if (runtime == NULL) {
        return ERR_OK;
    }
    TRY(string_table_intern_text(&aggregator->strings, runtime->key, &record->runtime));
    record->flags |=
        is_open(runtime, record, pid_of(process, session_memory)) ? REC_PROCESS_OBJECTS : 0;
    return u32_vec_push(&runtimes->news, process->index);
}

enum err process_runtimes_round(struct process_runtimes *runtimes,
                                struct aggregator *aggregator,
                                int session_memory)
{
    size_t kept = 0;
    for (; runtimes->seen < aggregator->processes.len; runtimes->seen++) {
        TRY(u32_vec_push(&runtimes->waiting, (uint32_t)runtimes->seen));
    }
    for (size_t i = 0; i < runtimes->waiting.len; i++) {
        struct aggregator_process *process =
            aggregator->processes.items[runtimes->waiting.items[i]];
        TRY(look(runtimes, aggregator, process, session_memory));
        if (process->record.runtime == 0 && !process->is_ended) {
            runtimes->waiting.items[kept++] = process->index;
        }
    }
    runtimes->waiting.len = kept;
    return ERR_OK;
}
