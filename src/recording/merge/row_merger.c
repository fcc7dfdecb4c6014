// SPDX-License-Identifier: MIT
#include "recording/merge/row_merger.h"

#include "base/compiler.h"

void row_merger_release(struct row_merger *merger)
{
    map_u64_release(&merger->rows);
    u32_vec_release(&merger->first_threads);
}

// Note the first thread of each process. A process number of a damaged file may be anything.
static MUST_USE enum err find_first_threads(struct row_merger *merger)
{
    TRY(u32_vec_resize(&merger->first_threads, merger->process_count));
    for (size_t i = merger->thread_count; i-- > 0;) {
        const uint32_t process = merger->threads[i].process;
        if (process < merger->process_count) {
            merger->first_threads.items[process] = (uint32_t)i;
        }
    }
    return ERR_OK;
}

static void add_row(struct rec_row *sum, const struct rec_row *row)
{
    sum->allocations += row->allocations;
    sum->allocated_bytes += row->allocated_bytes;
    sum->frees += row->frees;
    sum->freed_bytes += row->freed_bytes;
    sum->temporary += row->temporary;
    sum->temporary_bytes += row->temporary_bytes;
    sum->peak_bytes += row->peak_bytes;
    sum->peak_blocks += row->peak_blocks;
    sum->own_peak_bytes += row->own_peak_bytes;
}

enum err row_merger_add(
    struct row_merger *merger, struct rec_row *rows, size_t from, size_t count, size_t *out_count)
{
    size_t kept = from;
    if (merger->first_threads.len != merger->process_count) {
        TRY(find_first_threads(merger));
    }
    for (size_t i = from; i < count; i++) {
        struct rec_row row = rows[i];
        const uint32_t process =
            row.thread < merger->thread_count ? merger->threads[row.thread].process : REC_NONE;
        uint32_t index = (uint32_t)kept;
        if (process < merger->process_count) {
            row.thread = merger->first_threads.items[process];
            TRY(map_u64_number(&merger->rows, map_u64_pair(process, row.node), (uint32_t)kept,
                               &index));
        }
        if (index == kept) {
            rows[kept++] = row;
        } else {
            add_row(&rows[index], &row);
        }
    }
    *out_count = kept;
    return ERR_OK;
}
