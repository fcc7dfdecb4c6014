// SPDX-License-Identifier: MIT
#include "recorder/processes/unrecorded_list.h"

#include <stdbool.h>
#include <string.h>

#include "aggregate/aggregator.h"
#include "base/compiler.h"
#include "host/text/strbuf.h"
#include "recorder/processes/pid_lookup.h"
#include "recorder/session/session_create.h"
#include "session/exec_check.h"

#define UNREAD_PROGRAMS_MAX 64u  // waiting; others have no known runtime
#define WITHDRAW_MS         500u // more than an exec takes until its image joins

static const struct {
    const char *key;
    const char *phrase;
} reasons[EXEC_OBSTACLE_COUNT] = {
#define X(name, key, phrase) [EXEC_##name] = {key, phrase},
    EXEC_OBSTACLES(X)
#undef X
};

void unrecorded_list_release(struct unrecorded_list *list)
{
    rec_unrecorded_vec_release(&list->entries);
    unrecorded_exec_vec_release(&list->recent);
    unrecorded_exec_vec_release(&list->fresh);
    wanted_exec_vec_release(&list->wanted);
    loaded_note_vec_release(&list->loaded);
    unread_program_vec_release(&list->unread);
    runtime_files_release(&list->runtimes);
}

// Return the entry of that program and reason, or NULL.
static struct rec_unrecorded *
find_entry(struct unrecorded_list *list, rec_string program, rec_string reason)
{
    for (size_t i = 0; i < list->entries.len; i++) {
        struct rec_unrecorded *entry = &list->entries.items[i];
        if (entry->program == program && entry->reason == reason) {
            return entry;
        }
    }
    return NULL;
}

// Set the reason of an entry, as a word and as a phrase.
static enum err set_reason(struct unrecorded_list *list,
                           struct aggregator *aggregator,
                           const struct unrecorded_exec *exec,
                           struct rec_unrecorded *entry)
{
    const struct runtime *runtime = NULL;
    if (exec->obstacle == EXEC_STATIC) {
        (void)runtime_files_get(&list->runtimes, exec->program, &runtime); // or NULL
    }
    CLEANUP(strbuf_release) struct strbuf phrase = {0};
    const char *key = reasons[exec->obstacle].key;
    if (runtime != NULL && runtime->lacks_malloc) {
        key = runtime->key;
        runtime_explain_static(runtime, &phrase);
    } else {
        strbuf_append_text(&phrase, reasons[exec->obstacle].phrase);
    }
    TRY(strbuf_result(&phrase));
    TRY(string_table_intern_text(&aggregator->strings, key, &entry->reason));
    return string_table_intern_text(&aggregator->strings, strbuf_text(&phrase), &entry->text);
}

static enum err entry_of(struct unrecorded_list *list,
                         struct aggregator *aggregator,
                         const struct unrecorded_exec *exec,
                         struct rec_unrecorded **out)
{
    struct rec_unrecorded fresh = {.program = exec->program, .pid = (uint32_t)exec->pid};
    TRY(set_reason(list, aggregator, exec, &fresh));
    *out = find_entry(list, fresh.program, fresh.reason);
    if (*out == NULL && list->entries.len >= UNRECORDED_PROGRAMS_MAX) {
        TRY(string_table_intern_text(&aggregator->strings, "", &fresh.program));
        *out = find_entry(list, fresh.program, fresh.reason);
    }
    if (*out == NULL) {
        TRY(rec_unrecorded_vec_push(&list->entries, fresh));
        *out = &list->entries.items[list->entries.len - 1];
    }
    return ERR_OK;
}

// Return the latest recorded image of the process that executed the program; NULL: none.
static struct aggregator_process *process_of(struct aggregator *aggregator,
                                             const struct unrecorded_exec *exec)
{
    const uint32_t *index =
        exec->pid > 0 ? map_u64_find(&aggregator->last_of_pid, (uint64_t)exec->pid) : NULL;
    return index != NULL ? aggregator->processes.items[*index] : NULL;
}

// Note that the image of the process was replaced. If it was found dead, it had not been killed.
static void note_replaced(struct aggregator *aggregator, const struct unrecorded_exec *exec)
{
    struct aggregator_process *process = process_of(aggregator, exec);
    if (process != NULL && process->join_number < exec->joins) {
        process->record.flags |= REC_PROCESS_EXECED;
        process->record.flags &= ~(uint32_t)REC_PROCESS_KILLED;
        process->record.killed_threads = 0;
    }
}

static enum err count(struct unrecorded_list *list,
                      struct aggregator *aggregator,
                      const struct unrecorded_exec *exec)
{
    struct rec_unrecorded *entry = NULL;
    TRY(entry_of(list, aggregator, exec, &entry));
    entry->execs++;
    note_replaced(aggregator, exec);
    return ERR_OK;
}

enum err unrecorded_list_add_descendants(struct unrecorded_list *list,
                                         struct aggregator *aggregator,
                                         const struct unrecorded_exec *exec,
                                         uint64_t number)
{
    struct rec_unrecorded *entry = NULL;
    TRY(entry_of(list, aggregator, exec, &entry));
    entry->descendants += number;
    return ERR_OK;
}

static void forget(struct unrecorded_list *list, size_t index)
{
    struct unrecorded_exec_vec *recent = &list->recent;
    recent->items[index] = recent->items[--recent->len];
}

// One that is not in the list may be followed.
static enum err take_back(struct unrecorded_list *list, uint64_t number)
{
    for (size_t i = 0; i < list->recent.len; i++) {
        if (list->recent.items[i].number == number) {
            forget(list, i);
            return ERR_OK;
        }
    }
    const struct wanted_exec withdrawn = {.exec = {.number = number, .obstacle = EXEC_NONE}};
    return list->may_follow ? wanted_exec_vec_push(&list->wanted, withdrawn) : ERR_OK;
}

static pid_t pid_of(const struct session *session, const struct exec_note *note)
{
    if (note->pid == 0 || note->pid > INT32_MAX) {
        return 0;
    }
    const bool is_ours = note->pid_namespace == 0 || note->pid_namespace == session->pid_namespace;
    return is_ours ? (pid_t)note->pid : pid_lookup(note->pid, note->pid_namespace);
}

// Return our number of the note's thread, 0 if it is not known.
static pid_t thread_of(const struct exec_note *note, pid_t pid)
{
    const bool is_first = note->thread_id == note->pid;
    return is_first || (pid_t)note->pid == pid ? (is_first ? pid : (pid_t)note->thread_id) : 0;
}

enum err unrecorded_list_add(struct unrecorded_list *list,
                             struct aggregator *aggregator,
                             const struct unrecorded_exec *exec)
{
    TRY(unrecorded_exec_vec_push(&list->fresh, *exec));
    return list->recent.len < UNRECORDED_RECENT_MAX ? unrecorded_exec_vec_push(&list->recent, *exec)
                                                    : count(list, aggregator, exec);
}

// Keep the shared entry for the one who answers it, unless the recording ends.
static enum err take_loaded(struct unrecorded_list *list,
                            const struct session *session,
                            struct exec_note *shared,
                            const struct exec_note *copy,
                            uint64_t now_ms)
{
    const bool is_last = now_ms == UINT64_MAX;
    // Release: pairs with the acquire of the next claim.
    atomic_store_explicit(&shared->state, is_last ? EXEC_NOTE_FREE : EXEC_NOTE_HEARD,
                          memory_order_release);
    const struct loaded_note loaded = {.pid = pid_of(session, copy), .note = shared};
    return is_last ? ERR_OK : loaded_note_vec_push(&list->loaded, loaded);
}

// Return whether the file of a program was read, or is to be.
static bool is_read(struct unrecorded_list *list, rec_string program)
{
    const struct runtime *unused = NULL;
    bool is_asked = runtime_files_get(&list->runtimes, program, &unused);
    for (size_t i = 0; i < list->unread.len && !is_asked; i++) {
        is_asked = list->unread.items[i].program == program;
    }
    return is_asked || list->unread.len >= UNREAD_PROGRAMS_MAX;
}

// Keep the shared entry for the one who answers it, or free it.
static enum err take_note(struct unrecorded_list *list,
                          struct aggregator *aggregator,
                          const struct session *session,
                          struct exec_note *shared,
                          uint64_t now_ms)
{
    struct exec_note copy;
    const struct exec_note *note = &copy;
    memcpy(&copy, shared, sizeof(copy));
    if (copy.has_loaded != 0) {
        return take_loaded(list, session, shared, note, now_ms);
    }
    const bool is_exec = note->obstacle != EXEC_NONE && note->obstacle < EXEC_OBSTACLE_COUNT;
    const bool is_wanted = is_exec && list->may_follow && now_ms != UINT64_MAX &&
                           note->thread_id != 0 && note->follow == EXEC_FOLLOW_WANTED;
    // Release: pairs with the acquire of the next claim.
    atomic_store_explicit(&shared->state, is_wanted ? EXEC_NOTE_HEARD : EXEC_NOTE_FREE,
                          memory_order_release);
    if (!is_exec) {
        return take_back(list, note->number);
    }
    struct unrecorded_exec exec = {.number = note->number,
                                   .joins = note->joins,
                                   .time_ms = note->time_ms,
                                   .heard_ms = now_ms,
                                   .pid = pid_of(session, note),
                                   .obstacle = note->obstacle};
    TRY(string_table_intern(&aggregator->strings, note->path,
                            strnlen(note->path, sizeof(note->path)), &exec.program));
    if (exec.obstacle == EXEC_STATIC && !is_read(list, exec.program)) {
        TRY(unread_program_vec_push(
            &list->unread, (struct unread_program){.program = exec.program, .pid = exec.pid}));
    }
    const struct wanted_exec wanted = {.exec = exec,
                                       .note = shared,
                                       .thread = thread_of(note, exec.pid),
                                       .makes_child = note->makes_child != 0};
    return is_wanted ? wanted_exec_vec_push(&list->wanted, wanted)
                     : unrecorded_list_add(list, aggregator, &exec);
}

enum err unrecorded_list_take(struct unrecorded_list *list,
                              struct aggregator *aggregator,
                              const struct session *session,
                              uint64_t now_ms)
{
    // Acquire: pairs with the release of the writer, which counts its note when that is ready.
    const uint64_t noted = atomic_load_explicit(&session->header->exec_count, memory_order_acquire);
    if (noted == 0 || (noted == list->seen_count && now_ms != UINT64_MAX)) {
        return ERR_OK; // to read all notes takes as much memory as they have
    }
    list->seen_count = noted;
    for (uint32_t i = 0; i < SESSION_EXEC_NOTES; i++) {
        struct exec_note *shared = session_exec_note(session->memory, i);
        // Acquire: pairs with the release of READY; the rest is final.
        if (atomic_load_explicit(&shared->state, memory_order_acquire) == EXEC_NOTE_READY) {
            TRY(take_note(list, aggregator, session, shared, now_ms));
        }
    }
    return ERR_OK;
}

// Return whether an image of the process has joined after the note.
static bool was_recorded(struct aggregator *aggregator, const struct unrecorded_exec *exec)
{
    const struct aggregator_process *process = process_of(aggregator, exec);
    return process != NULL && (process->record.flags & REC_PROCESS_FORKED) == 0 &&
           process->join_number >= exec->joins;
}

enum err unrecorded_list_count_due(struct unrecorded_list *list,
                                   struct aggregator *aggregator,
                                   uint64_t now_ms)
{
    for (size_t i = 0; i < list->recent.len;) {
        const struct unrecorded_exec exec = list->recent.items[i];
        if (was_recorded(aggregator, &exec)) {
            forget(list, i);
        } else if (now_ms == UINT64_MAX || now_ms >= exec.heard_ms + WITHDRAW_MS) {
            forget(list, i);
            TRY(count(list, aggregator, &exec));
        } else {
            i++;
        }
    }
    return ERR_OK;
}
