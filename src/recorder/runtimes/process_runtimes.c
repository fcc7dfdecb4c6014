// SPDX-License-Identifier: MIT
#include "recorder/runtimes/process_runtimes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "recorder/processes/pid_lookup.h"

void process_runtimes_release(struct process_runtimes *runtimes)
{
    runtime_files_release(&runtimes->files);
    u32_vec_release(&runtimes->waiting);
    u32_vec_release(&runtimes->news);
}

static bool is_started_program(const struct rec_process *record)
{
    return (record->flags & REC_PROCESS_MAIN) != 0 && (record->flags & REC_PROCESS_ATTACHED) == 0 &&
           record->epoch == 0;
}

void runtime_reading_free(void *context)
{
    struct runtime_reading *reading = context;
    if (reading != NULL) {
        fd_closep(&reading->session_memory);
        strbuf_release(&reading->path);
        free(reading);
    }
}

static bool is_open(const struct runtime_reading *reading, pid_t pid)
{
    CLEANUP(strbuf_release) struct strbuf environment = {0};
    if (reading->runtime == NULL || reading->runtime->setting == NULL) {
        return false;
    }
    if (reading->tells_settings) {
        return (reading->settings & reading->runtime->settings) != 0;
    }
    const bool is_read =
        pid != 0 && proc_file_read(pid, "environ", PROC_FILE_ENVIRONMENT_BYTES, &environment);
    if (!is_read && reading->is_started_program) {
        strbuf_clear(&environment);
        (void)!proc_file_read(getpid(), "environ", PROC_FILE_ENVIRONMENT_BYTES, &environment);
    }
    return runtime_is_open(reading->runtime, strbuf_bytes(&environment));
}

void runtime_reading_take(void *context)
{
    struct runtime_reading *reading = context;
    const pid_t pid = reading->pid > 0 && pid_lookup_may_map(reading->pid, reading->session_memory)
                          ? reading->pid
                          : 0;
    if (reading->path.len > 0) {
        reading->runtime = runtime_files_read(strbuf_text(&reading->path), pid);
    }
    reading->is_open = is_open(reading, pid);
}

static enum err begin_reading(const struct aggregator_process *process,
                              const struct string_table *strings,
                              const struct runtime *runtime,
                              int session_memory,
                              struct runtime_reading **out)
{
    const struct rec_process *record = &process->record;
    struct runtime_reading *reading = malloc(sizeof(*reading));
    if (reading == NULL) {
        return ERR_NO_MEMORY;
    }
    *reading = (struct runtime_reading){.pid = process->is_ended ? 0 : (pid_t)record->pid,
                                        .session_memory = fcntl(session_memory, F_DUPFD_CLOEXEC, 0),
                                        .runtime = runtime,
                                        .tells_settings = process->tells_settings,
                                        .settings = process->settings,
                                        .is_started_program = is_started_program(record)};
    if (runtime == NULL) {
        strbuf_append_text(&reading->path, string_table_get(strings, record->executable));
    }
    if (strbuf_result(&reading->path) != ERR_OK) {
        runtime_reading_free(reading);
        return ERR_NO_MEMORY;
    }
    *out = reading;
    return ERR_OK;
}

static enum err note(struct process_runtimes *runtimes,
                     struct aggregator *aggregator,
                     struct aggregator_process *process,
                     const struct runtime *runtime,
                     bool is_open)
{
    TRY(string_table_intern_text(&aggregator->strings, runtime->key, &process->record.runtime));
    process->record.flags |= is_open ? REC_PROCESS_OBJECTS : 0;
    return u32_vec_push(&runtimes->news, process->index);
}

// Look at one process. *out: what is to be read of it; *out_stays: it is looked at again.
static enum err look(struct process_runtimes *runtimes,
                     struct aggregator *aggregator,
                     struct aggregator_process *process,
                     int session_memory,
                     struct runtime_reading **out,
                     bool *out_stays)
{
    const struct rec_process *record = &process->record;
    const struct runtime *runtime =
        record->runtime != 0
            ? runtime_table_named(string_table_get(&aggregator->strings, record->runtime))
            : NULL;
    *out_stays = record->runtime == 0 && !process->is_ended;
    if (record->runtime == 0 && record->executable != 0 &&
        !runtime_files_get(&runtimes->files, record->executable, &runtime)) {
        *out_stays = false; // it comes back without a runtime
        return begin_reading(process, &aggregator->strings, NULL, session_memory, out);
    }
    if (runtime == NULL) {
        return ERR_OK;
    }
    *out_stays = false;
    return runtime->setting != NULL
               ? begin_reading(process, &aggregator->strings, runtime, session_memory, out)
               : note(runtimes, aggregator, process, runtime, false);
}

enum err process_runtimes_next(struct process_runtimes *runtimes,
                               struct aggregator *aggregator,
                               int session_memory,
                               size_t looks,
                               struct aggregator_process **out_process,
                               struct runtime_reading **out)
{
    struct u32_vec *waiting = &runtimes->waiting;
    *out_process = NULL;
    *out = NULL;
    for (; runtimes->seen < aggregator->processes.len; runtimes->seen++) {
        TRY(u32_vec_push(waiting, (uint32_t)runtimes->seen));
    }
    for (size_t i = 0, left = waiting->len; i < looks && left > 0 && *out == NULL; i++, left--) {
        runtimes->next = runtimes->next < waiting->len ? runtimes->next : 0;
        struct aggregator_process *process =
            aggregator->processes.items[waiting->items[runtimes->next]];
        bool stays = false;
        TRY(look(runtimes, aggregator, process, session_memory, out, &stays));
        if (stays) {
            runtimes->next++;
        } else {
            waiting->items[runtimes->next] = waiting->items[--waiting->len];
        }
        *out_process = *out != NULL ? process : NULL;
    }
    return ERR_OK;
}

enum err process_runtimes_put(struct process_runtimes *runtimes,
                              struct aggregator *aggregator,
                              struct aggregator_process *process,
                              const struct runtime_reading *reading)
{
    const struct rec_process *record = &process->record;
    const struct runtime *runtime = NULL;
    if (record->runtime != 0) { // a library told it
        runtime = runtime_table_named(string_table_get(&aggregator->strings, record->runtime));
    } else if (!runtime_files_get(&runtimes->files, record->executable, &runtime)) {
        runtime = reading != NULL ? reading->runtime : NULL;
        TRY(runtime_files_put(&runtimes->files, record->executable, runtime));
    }
    if (runtime != NULL) {
        return note(runtimes, aggregator, process, runtime, reading != NULL && reading->is_open);
    }
    return process->is_ended ? ERR_OK : u32_vec_push(&runtimes->waiting, process->index);
}
