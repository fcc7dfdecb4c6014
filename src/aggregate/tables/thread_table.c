// SPDX-License-Identifier: MIT
#include "aggregate/tables/thread_table.h"

void thread_table_release(struct thread_table *table)
{
    rec_thread_vec_release(&table->threads);
    u32_vec_release(&table->next_ended);
    map_u64_release(&table->ended);
}

static bool
take_over(struct thread_table *table, uint32_t process, rec_string name, uint32_t *out_entry)
{
    const uint64_t key = map_u64_pair(process, name);
    uint32_t *first = map_u64_find(&table->ended, key);
    if (first == NULL) {
        return false;
    }
    uint32_t entry = *first;
    if (table->next_ended.items[entry] == REC_NONE) {
        (void)map_u64_remove(&table->ended, key); // just found there
    } else {
        *first = table->next_ended.items[entry];
    }
    struct rec_thread *thread = table->threads.items + entry;
    thread->flags |= REC_THREAD_MERGED;
    thread->merged_count++;
    thread->end_ms = 0;
    *out_entry = entry;
    return true;
}

enum err thread_table_begin(struct thread_table *table,
                            uint32_t process,
                            uint32_t thread_id,
                            rec_string name,
                            uint64_t start_ms,
                            uint32_t *out_entry)
{
    if (table->threads.len >= THREADS_APART && take_over(table, process, name, out_entry)) {
        return ERR_OK;
    }
    if (table->threads.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    TRY(u32_vec_reserve(&table->next_ended, 1));
    TRY(rec_thread_vec_reserve(&table->threads, 1));
    *out_entry = (uint32_t)table->threads.len;
    table->next_ended.items[table->next_ended.len++] = REC_NONE;
    table->threads.items[table->threads.len++] = (struct rec_thread){.process = process,
                                                                     .thread_id = thread_id,
                                                                     .merged_count = 1,
                                                                     .start_ms = start_ms,
                                                                     .name = name};
    return ERR_OK;
}

void thread_table_end(struct thread_table *table, uint32_t entry, uint64_t end_ms)
{
    struct rec_thread *thread = table->threads.items + entry;
    thread->end_ms = end_ms;
    const uint64_t key = map_u64_pair(thread->process, thread->name);
    const uint32_t *first = map_u64_find(&table->ended, key);
    table->next_ended.items[entry] = first != NULL ? *first : REC_NONE;
    // Without memory the entry is never taken over.
    (void)!map_u64_put(&table->ended, key, entry);
}
