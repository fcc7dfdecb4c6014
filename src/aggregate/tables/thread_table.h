// SPDX-License-Identifier: MIT
// thread_table: the threads of the recording.
//
// A thread gets its entry with its first stack, when its name is known. Beyond THREADS_APART
// entries a new thread takes over the entry of an ended thread of the same name in the same
// process, if one exists; the entry then stands for both. So a program that keeps starting threads
// needs as many entries as it has threads at one time, plus names.
// Context: H, one thread.
// Failure: ERR_NO_MEMORY, ERR_LIMIT.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

#define THREADS_APART 1024u

DEFINE_VEC(rec_thread_vec, struct rec_thread);

struct thread_table {
    struct rec_thread_vec threads;
    struct u32_vec next_ended; // parallel: the next ended entry of the same process and name
    struct map_u64 ended;      // (process, name) -> the entry that ended last
};

void thread_table_release(struct thread_table *table);

// Get an entry for a thread that begins. `name`: an id in the recording's strings.
enum err thread_table_begin(struct thread_table *table,
                            uint32_t process,
                            uint32_t thread_id,
                            rec_string name,
                            uint64_t start_ms,
                            uint32_t *out_entry) MUST_USE;

// Note that the thread of this entry has ended. Another thread may take the entry over.
void thread_table_end(struct thread_table *table, uint32_t entry, uint64_t end_ms);
