// SPDX-License-Identifier: MIT
// book_process: how processes and threads enter the book and leave it. See book.h too.
#include "aggregate/book_process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregate/book.h"
#include "base/hash.h"
#include "base/minmax.h"

static void process_empty(struct book_process *process)
{
    live_map_release(&process->live);
    map_u64_release(&process->nodes_by_name);
    waiting_frees_release(&process->waiting);
    mapping_map_release(&process->mapped);
    map_u64_release(&process->mapping_rows);
    map_u64_release(&process->adhoc_rows);
}

void book_release(struct book *book)
{
    for (size_t i = 0; i < book->processes.len; i++) {
        process_empty(book->processes.items[i]);
        free(book->processes.items[i]);
    }
    book_process_vec_release(&book->processes);
    book_stop_vec_release(&book->stops);
    map_u64_release(&book->last_of_pid);
    rec_mapping_vec_release(&book->mappings);
    rec_adhoc_vec_release(&book->adhoc);
    mark_list_release(&book->marks);
    peak_scopes_release(&book->scopes);
    thread_table_release(&book->threads);
    heap_totals_release(&book->totals);
    stack_table_release(&book->stacks);
    string_table_release(&book->strings);
}

// As rec_process.left_ms has it, for blocks that leave the heap now: never 0.
static uint64_t leaving_ms(const struct book *book)
{
    return book->totals.now_ms + 1;
}

// Another process begins: what the last one held is no longer what the recording ends with.
static void end_lingering(struct book *book)
{
    if (book->lingering != NULL) {
        book->lingering->record.left_ms = leaving_ms(book);
        book->lingering = NULL;
        book->totals.sums.lingering_bytes = 0;
    }
}

// The blocks of a process that has ended leave the heap, unless it is the last one.
static void leave(struct book *book, struct book_process *process)
{
    book->totals.sums.live_bytes -= process->live_bytes;
    book->running_count--;
    if (book->running_count > 0) {
        process->record.left_ms = leaving_ms(book);
    } else {
        book->lingering = process;
        book->totals.sums.lingering_bytes = process->live_bytes;
    }
}

static struct book_process *latest_of_pid(struct book *book, uint32_t pid)
{
    const uint32_t *index = map_u64_find(&book->last_of_pid, pid);
    return index != NULL ? book->processes.items[*index] : NULL;
}

// Whose image it has if it has none of its own; NULL: it has.
static const struct book_process *image_parent(const struct book *book,
                                               const struct book_process *process)
{
    const bool is_copy = (process->record.flags & REC_PROCESS_FORKED) != 0;
    return is_copy && process->record.parent != REC_NONE
               ? book->processes.items[process->record.parent]
               : NULL;
}

// Parents have lower numbers, so this ends.
const struct book_process *book_process_origin(const struct book *book,
                                               const struct book_process *process)
{
    const struct book_process *parent;
    while (process->record.executable == 0 && (parent = image_parent(book, process)) != NULL) {
        process = parent;
    }
    return process;
}

void book_process_inherit(const struct book *book, struct book_process *process)
{
    const struct rec_process *record = &process->record;
    const struct book_process *parent = image_parent(book, process);
    for (; parent != NULL &&
           (record->executable == 0 || record->command_line == 0 || record->allocator == 0);
         parent = image_parent(book, parent)) {
        const rec_string inherited[] = {parent->record.executable, parent->record.command_line,
                                        parent->record.allocator};
        rec_string *const own[] = {&process->record.executable, &process->record.command_line,
                                   &process->record.allocator};
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
            *own[i] = *own[i] == 0 ? inherited[i] : *own[i];
        }
    }
}

enum err
book_process_begin(struct book *book, const struct rec_process *what, struct book_process **out)
{
    if (book->processes.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    TRY(book_process_vec_reserve(&book->processes, 1));
    struct book_process *process = calloc(1, sizeof(*process));
    if (process == NULL) {
        return ERR_NO_MEMORY;
    }
    process->record = *what;
    process->index = (uint32_t)book->processes.len;
    live_map_init(&process->live, hash_mix(book->seed + process->index));
    const struct book_process *parent = latest_of_pid(book, what->parent_pid);
    process->record.parent = parent != NULL ? parent->index : REC_NONE;
    book_process_inherit(book, process);
    const struct book_process *earlier = latest_of_pid(book, what->pid);
    if (earlier != NULL && (earlier->record.flags & REC_PROCESS_EXECED) != 0) {
        process->record.epoch = earlier->record.epoch + 1;
        process->record.flags |= earlier->record.flags & REC_PROCESS_MAIN;
    }
    enum err err = map_u64_put(&book->last_of_pid, what->pid, process->index);
    if (err != ERR_OK) {
        free(process);
        return err;
    }
    book->processes.items[book->processes.len++] = process;
    end_lingering(book);
    book->running_count++;
    *out = process;
    const bool is_copy = parent != NULL && (what->flags & REC_PROCESS_FORKED) != 0;
    return is_copy ? book_mapping_inherit(book, process, parent) : ERR_OK;
}

static void left_out_leave(struct book *book, struct book_process *process)
{
    const struct left_out_sums *sums = &process->left_out;
    const struct left_out_sums change = {.known_bytes = -sums->known_bytes,
                                         .lost_blocks = -sums->lost_blocks,
                                         .lost_bytes = -sums->lost_bytes,
                                         .stand_in_bytes = -sums->stand_in_bytes,
                                         .variance = -sums->variance};
    left_out_sums_add(&book->estimate.now, &change);
}

enum err book_process_end(struct book *book,
                          struct book_process *process,
                          const struct book_process_ending *ending)
{
    if (process->is_ended) {
        return ERR_OK;
    }
    book_settle(book, process, UINT64_MAX);
    if (book->observers.count > 0) {
        TRY(row_table_count(&book->totals.rows));
        TRY(observers_tell(&book->observers,
                           &(struct observed_event){.event = {.time_ms = ending->end_ms,
                                                              .kind = REC_EVENT_PROCESS_END,
                                                              .process = process->index,
                                                              .thread = REC_NONE,
                                                              .row = REC_NONE},
                                                    .live = &process->live,
                                                    .peak_number = book->totals.rows.peak_number}));
    }
    process->is_ended = true;
    process->end_peak_number = book->totals.rows.peak_number;
    process->record.end_ms = max_u64(ending->end_ms, process->record.start_ms);
    const uint64_t before_bytes = book_live_bytes(book);
    leave(book, process);
    left_out_leave(book, process);
    book->totals.live_blocks -= process->live.live_count + process->stand_ins;
    book->stand_ins -= process->stand_ins;
    const uint64_t left_bytes = book_live_bytes(book);
    peak_bound_leave(&book->bound, before_bytes > left_bytes ? before_bytes - left_bytes : 0,
                     ending->gone_stamp, left_bytes);
    process_empty(process);
    return ERR_OK;
}

void book_thread_begin(struct book_thread *thread,
                       struct book_process *process,
                       uint32_t lane,
                       uint32_t thread_id,
                       uint64_t start_ms)
{
    *thread = (struct book_thread){.process = process,
                                   .lane = lane,
                                   .thread_id = thread_id,
                                   .entry = REC_NONE,
                                   .start_ms = start_ms,
                                   .tick_ms = start_ms,
                                   .flight = {.stamp = process->start_stamp}};
    process->thread_count++;
}

void book_thread_end(struct book *book, struct book_thread *thread)
{
    peak_bound_landed(&book->bound, &thread->flight);
    book->estimate.grain_bytes -= thread->grain_bytes;
    thread->grain_bytes = 0;
    if (thread->entry != REC_NONE) {
        peak_scopes_end_thread(&book->scopes, thread->entry, thread->lane);
        if (book->scopes.threads.len == 0) {
            observer_remove(&book->observers, &book->scopes);
        }
        thread_table_end(&book->threads, thread->entry, book->totals.now_ms);
        thread->entry = REC_NONE;
    }
}

enum err book_thread_name(struct book *book, struct book_thread *thread, struct bytes name)
{
    size_t len = strnlen((const char *)name.data, name.len);
    TRY(string_table_intern(&book->strings, (const char *)name.data, len, &thread->name));
    if (thread->entry != REC_NONE) {
        struct rec_thread *entry = book->threads.threads.items + thread->entry;
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

enum err book_jit_module(struct book *book, struct book_process *process, uint32_t *out)
{
    char path[32];
    if (process->jit_module == 0) {
        const int len = snprintf(path, sizeof(path), "[jit %" PRIu32 "]", process->record.pid);
        const struct bytes text = {(const uint8_t *)path, (size_t)len};
        uint32_t id;
        TRY(stack_table_module(&book->stacks, text, (struct bytes){0}, &id));
        process->jit_module = id + 1;
    }
    *out = process->jit_module - 1;
    return ERR_OK;
}
