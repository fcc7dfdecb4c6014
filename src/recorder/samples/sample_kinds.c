// SPDX-License-Identifier: MIT
#include "recorder/samples/sample_kinds.h"

#include "base/minmax.h"

// Move at most `most_bytes` of *from.
static uint64_t move_at_most(uint64_t *from, uint64_t most_bytes)
{
    const uint64_t bytes = min_u64(*from, most_bytes);
    *from -= bytes;
    return bytes;
}

static void
grow(struct rec_rss_sample *sample, const struct rec_memory_snapshot *snapshot, uint64_t more_bytes)
{
    sample->shmem_bytes +=
        move_at_most(&more_bytes, excess_u64(snapshot->shared_bytes, sample->shmem_bytes));
    sample->file_bytes +=
        move_at_most(&more_bytes, excess_u64(snapshot->file_bytes, sample->file_bytes));
    sample->anonymous_bytes += more_bytes;
}

static void shrink(struct rec_rss_sample *sample,
                   const struct rec_memory_snapshot *snapshot,
                   uint64_t less_bytes)
{
    sample->shmem_bytes -=
        move_at_most(&less_bytes, excess_u64(sample->shmem_bytes, snapshot->shared_bytes));
    sample->file_bytes -=
        move_at_most(&less_bytes, excess_u64(sample->file_bytes, snapshot->file_bytes));
    less_bytes -= move_at_most(&sample->anonymous_bytes, less_bytes);
    less_bytes -= move_at_most(&sample->file_bytes, less_bytes);
    sample->shmem_bytes -= less_bytes;
}

void sample_kinds_fit(struct rec_rss_sample *sample, const struct rec_memory_snapshot *snapshot)
{
    const uint64_t sum_bytes = sample->anonymous_bytes + sample->file_bytes + sample->shmem_bytes;
    grow(sample, snapshot, excess_u64(snapshot->rss_bytes, sum_bytes));
    shrink(sample, snapshot, excess_u64(sum_bytes, snapshot->rss_bytes));
    sample->rss_bytes = snapshot->rss_bytes;
}
