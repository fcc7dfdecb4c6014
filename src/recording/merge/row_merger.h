// SPDX-License-Identifier: MIT
// row_merger: adds up the rows of the threads of a process while they are read, so that a reader
// with little memory holds one row for each stack of a process.
//
//   rows of the file   (thread 1, node 7) (thread 2, node 7) (thread 2, node 9)
//   rows in memory     (thread 1, node 7)                    (thread 1, node 9)
//
// A merged row has the first thread of its process. The highest live bytes of a merged row are not
// the sum of those of its rows: the reader marks them as unknown.
// Context: H; pure. Trust: rows and threads are unchecked; a row without a thread stays as it is.
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

struct row_merger {
    const struct rec_thread *threads; // borrowed; the same each time
    size_t thread_count;
    size_t process_count;
    struct map_u64 rows;          // owned; process and node -> index of the row
    struct u32_vec first_threads; // owned; by process; 0 also for one without threads
};

void row_merger_release(struct row_merger *merger);

// Merge rows[from..count) into rows[0..from), which are merged already. *out_count is the number of
// rows that are left. ERR_NO_MEMORY.
enum err row_merger_add(struct row_merger *merger,
                        struct rec_row *rows,
                        size_t from,
                        size_t count,
                        size_t *out_count) MUST_USE;
