// SPDX-License-Identifier: MIT
// aggregator_process: how processes and threads enter and leave the aggregator. See also
// aggregator.h.
#include "aggregate/aggregator_process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregate/aggregator.h"
#include "base/minmax.h"

static void process_empty(struct aggregator_process *process)
{
    u32_vec_release(&process->book_nodes);
    u32_vec_release(&process->book_rows);
    u32_vec_release(&process->book_live);
    u32_vec_release(&process->book_unused);
    u32_vec_release(&process->book_levels);
    book_entry_vec_release(&process->debts);
    map_u64_release(&process->nodes_by_name);
    mapping_map_release(&process->mapped);
    map_u64_release(&process->mapping_rows);
    map_u64_release(&process->adhoc_rows);
    map_u64_release(&process->expected_threads);
    u64_vec_release(&process->earlier_ranges);
    process_allocator_vec_release(&process->allocators);
}

void aggregator_release(struct aggregator *aggregator)
{
    for (size_t i = 0; i < aggregator->processes.len; i++) {
        process_empty(aggregator->processes.items[i]);
        free(aggregator->processes.items[i]);
    }
    aggregator_process_vec_release(&aggregator->processes);
    aggregator_stop_vec_release(&aggregator->stops);
    map_u64_release(&aggregator->last_of_pid);
    rec_mapping_vec_release(&aggregator->mappings);
    rec_adhoc_vec_release(&aggregator->adhoc);
    realloc_table_release(&aggregator->reallocs);
    mark_list_release(&aggregator->marks);
    peak_scopes_release(&aggregator->scopes);
    thread_table_release(&aggregator->threads);
    heap_totals_release(&aggregator->totals);
    stack_table_release(&aggregator->stacks);
    string_table_release(&aggregator->strings);
}

// Return rec_process.left_ms of a process that has ended, never 0. Its end was found late.
static uint64_t left_ms_of(const struct aggregator_process *process)
{
    return max_u64(process->record.end_ms, process->book_ms) + 1;
}

// Begin another process: the blocks of the last one no longer end the recording.
static void settle_last_ended(struct aggregator *aggregator)
{
    if (aggregator->last_ended != NULL) {
        aggregator->last_ended->record.left_ms = left_ms_of(aggregator->last_ended);
        aggregator->last_ended = NULL;
        aggregator->totals.sums.last_ended_bytes = 0;
    }
}

// Remove the blocks of an ended process from the heap, unless it is the last one.
static void leave_heap(struct aggregator *aggregator, struct aggregator_process *process)
{
    aggregator->totals.sums.live_bytes -= process->live_bytes;
    aggregator->running_count--;
    if (aggregator->running_count > 0) {
        process->record.left_ms = left_ms_of(process);
    } else {
        aggregator->last_ended = process;
        aggregator->totals.sums.last_ended_bytes = process->live_bytes;
    }
}

struct aggregator_process *aggregator_process_latest(struct aggregator *aggregator, uint32_t pid)
{
    const uint32_t *index = map_u64_find(&aggregator->last_of_pid, pid);
    return index != NULL ? aggregator->processes.items[*index] : NULL;
}

// Return the parent whose image the process has, or NULL if it has an image of its own.
static const struct aggregator_process *image_parent(const struct aggregator *aggregator,
                                                     const struct aggregator_process *process)
{
    const bool is_copy = (process->record.flags & REC_PROCESS_FORKED) != 0;
    return is_copy && process->record.parent != REC_NONE
               ? aggregator->processes.items[process->record.parent]
               : NULL;
}

// Parents have lower numbers, so this ends.
const struct aggregator_process *aggregator_process_origin(const struct aggregator *aggregator,
                                                           const struct aggregator_process *process)
{
    const struct aggregator_process *parent;
    while (process->record.executable == 0 &&
           (parent = image_parent(aggregator, process)) != NULL) {
        process = parent;
    }
    return process;
}

void aggregator_process_inherit(const struct aggregator *aggregator,
                                struct aggregator_process *process)
{
    const struct rec_process *record = &process->record;
    const struct aggregator_process *parent = image_parent(aggregator, process);
    for (; parent != NULL &&
           (record->executable == 0 || record->command_line == 0 || record->allocator == 0);
         parent = image_parent(aggregator, parent)) {
        const rec_string inherited[] = {parent->record.executable, parent->record.command_line,
                                        parent->record.allocator};
        rec_string *const own[] = {&process->record.executable, &process->record.command_line,
                                   &process->record.allocator};
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
            *own[i] = *own[i] == 0 ? inherited[i] : *own[i];
        }
    }
    parent = image_parent(aggregator, process);
    if (parent != NULL && record->runtime == 0 && parent->record.runtime != 0) {
        process->record.runtime = parent->record.runtime;
        process->record.flags |= parent->record.flags & REC_PROCESS_OBJECTS;
    }
}

static MUST_USE enum err inherit_allocators(struct aggregator_process *child,
                                            const struct aggregator_process *parent)
{
    child->libc = parent->libc;
    child->has_agent = parent->has_agent;
    child->is_late = parent->is_late;
    for (size_t i = 0; i < parent->allocators.len; i++) {
        const struct process_allocator *of = parent->allocators.items + i;
        TRY(process_allocator_vec_push(
            &child->allocators,
            (struct process_allocator){.module = of->module, .name = of->name}));
    }
    return ERR_OK;
}

enum err aggregator_process_begin(struct aggregator *aggregator,
                                  const struct rec_process *what,
                                  struct aggregator_process **out)
{
    if (aggregator->processes.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    TRY(aggregator_process_vec_reserve(&aggregator->processes, 1));
    struct aggregator_process *process = calloc(1, sizeof(*process));
    if (process == NULL) {
        return ERR_NO_MEMORY;
    }
    process->record = *what;
    process->index = (uint32_t)aggregator->processes.len;
    const struct aggregator_process *parent =
        aggregator_process_latest(aggregator, what->parent_pid);
    process->record.parent = parent != NULL ? parent->index : REC_NONE;
    aggregator_process_inherit(aggregator, process);
    const struct aggregator_process *earlier = aggregator_process_latest(aggregator, what->pid);
    if (earlier != NULL && (earlier->record.flags & REC_PROCESS_EXECED) != 0) {
        process->record.epoch = earlier->record.epoch + 1;
        process->record.flags |= earlier->record.flags & REC_PROCESS_MAIN;
    }
    enum err err = map_u64_put(&aggregator->last_of_pid, what->pid, process->index);
    if (err != ERR_OK) {
        free(process);
        return err;
    }
    aggregator->processes.items[aggregator->processes.len++] = process;
    settle_last_ended(aggregator);
    aggregator->running_count++;
    *out = process;
    const bool is_copy = parent != NULL && (what->flags & REC_PROCESS_FORKED) != 0;
    TRY(is_copy ? inherit_allocators(process, parent) : ERR_OK);
    return is_copy ? aggregator_mapping_inherit(aggregator, process, parent) : ERR_OK;
}

enum err aggregator_process_end(struct aggregator *aggregator,
                                struct aggregator_process *process,
                                const struct aggregator_process_ending *ending)
{
    if (process->is_ended) {
        return ERR_OK;
    }
    // Also if nothing happened since then.
    TRY(heap_totals_advance(&aggregator->totals, ending->end_ms));
    process->is_ended = true;
    process->end_peak_number = aggregator->totals.rows.peak_number;
    process->record.end_ms = max_u64(ending->end_ms, process->record.start_ms);
    process->record.end_error_ms = ending->error_ms + 1;
    leave_heap(aggregator, process);
    aggregator->totals.live_blocks -= process->live_blocks;
    process_empty(process);
    return ERR_OK;
}

void aggregator_thread_begin(struct aggregator_thread *thread,
                             struct aggregator_process *process,
                             uint32_t lane,
                             uint32_t thread_id,
                             uint64_t start_ms)
{
    *thread = (struct aggregator_thread){.process = process,
                                         .lane = lane,
                                         .thread_id = thread_id,
                                         .entry = REC_NONE,
                                         .start_ms = start_ms,
                                         .tick_ms = start_ms};
    process->thread_count++;
}

enum err aggregator_thread_expect(struct aggregator *aggregator,
                                  struct aggregator_process *process,
                                  uint32_t thread_id,
                                  struct bytes name)
{
    uint32_t entry;
    rec_string text;
    if (map_u64_find(&process->expected_threads, thread_id) != NULL) {
        return ERR_OK;
    }
    TRY(string_table_intern_prefix(&aggregator->strings, name, &text));
    TRY(thread_table_begin(&aggregator->threads, process->index, thread_id, text,
                           process->record.start_ms, &entry));
    return map_u64_put(&process->expected_threads, thread_id, entry);
}

enum err aggregator_thread_enter(struct aggregator *aggregator, struct aggregator_thread *thread)
{
    struct map_u64 *expected = &thread->process->expected_threads;
    if (thread->entry != REC_NONE) {
        return ERR_OK;
    }
    if (!map_u64_get(expected, thread->thread_id, &thread->entry)) {
        return thread_table_begin(&aggregator->threads, thread->process->index, thread->thread_id,
                                  thread->name, thread->start_ms, &thread->entry);
    }
    (void)map_u64_remove(expected, thread->thread_id); // just found there
    if (thread->name != 0) {
        aggregator->threads.threads.items[thread->entry].name = thread->name;
    }
    return ERR_OK;
}

void aggregator_thread_end(struct aggregator *aggregator,
                           struct aggregator_thread *thread,
                           uint64_t end_ms)
{
    if (thread->entry != REC_NONE) {
        peak_scopes_end_thread(&aggregator->scopes, thread->entry, thread->lane);
        thread_table_end(&aggregator->threads, thread->entry, end_ms);
        thread->entry = REC_NONE;
    }
}

enum err aggregator_thread_name(struct aggregator *aggregator,
                                struct aggregator_thread *thread,
                                struct bytes name)
{
    TRY(string_table_intern_prefix(&aggregator->strings, name, &thread->name));
    if (thread->entry != REC_NONE) {
        struct rec_thread *entry = aggregator->threads.threads.items + thread->entry;
        if ((entry->flags & REC_THREAD_MERGED) == 0) {
            entry->name = thread->name;
        }
    }
    return ERR_OK;
}

static bool needs_no_quotes(struct bytes word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=:,@%+";
    for (size_t i = 0; i < word.len; i++) {
        if (word.data[i] == 0 || strchr(plain, word.data[i]) == NULL) {
            return false;
        }
    }
    return word.len > 0;
}

static void quote_word(struct strbuf *line, struct bytes word)
{
    if (needs_no_quotes(word)) {
        strbuf_append(line, word.data, word.len);
        return;
    }
    strbuf_append_char(line, '\'');
    for (size_t i = 0; i < word.len; i++) {
        if (word.data[i] == '\'') {
            strbuf_append_text(line, "'\\''");
        } else {
            strbuf_append_char(line, (char)word.data[i]);
        }
    }
    strbuf_append_char(line, '\'');
}

void command_line_quote(struct strbuf *line, struct bytes arguments)
{
    size_t at = 0;
    while (at < arguments.len) {
        size_t len = strnlen((const char *)arguments.data + at, arguments.len - at);
        if (at > 0) {
            strbuf_append_char(line, ' ');
        }
        quote_word(line, (struct bytes){.data = arguments.data + at, .len = len});
        at += len + 1;
    }
}

enum err command_line_intern(struct string_table *strings, struct bytes arguments, rec_string *out)
{
    CLEANUP(strbuf_release) struct strbuf line = {0};
    command_line_quote(&line, arguments);
    TRY(strbuf_result(&line));
    return string_table_intern(strings, strbuf_text(&line), line.len, out);
}

enum err aggregator_jit_module(struct aggregator *aggregator,
                               struct aggregator_process *process,
                               uint32_t *out)
{
    char path[32];
    if (process->jit_module == 0) {
        const int len = snprintf(path, sizeof(path), "[jit %" PRIu32 "]", process->record.pid);
        const struct bytes text = {(const uint8_t *)path, (size_t)len};
        uint32_t id;
        TRY(stack_table_module(&aggregator->stacks, text, (struct bytes){0}, &id));
        process->jit_module = id + 1;
    }
    *out = process->jit_module - 1;
    return ERR_OK;
}

enum err aggregator_begin_scope(struct aggregator *aggregator,
                                struct aggregator_thread *thread,
                                uint32_t scope)
{
    TRY(aggregator_thread_enter(aggregator, thread));
    return peak_scopes_begin(&aggregator->scopes, thread->entry, thread->lane, scope);
}

uint64_t aggregator_scope_peak(struct aggregator *aggregator,
                               const struct aggregator_thread *thread,
                               uint32_t scope)
{
    return peak_scopes_most(&aggregator->scopes, thread->entry, thread->lane, scope);
}

void aggregator_end_scope(struct aggregator *aggregator,
                          const struct aggregator_thread *thread,
                          uint32_t scope)
{
    peak_scopes_end(&aggregator->scopes, thread->entry, thread->lane, scope);
}
