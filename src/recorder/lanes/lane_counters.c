// SPDX-License-Identifier: MIT
#include "recorder/lanes/lane_counters.h"

#include "base/minmax.h"
#include "recorder/session/claimed_counter.h"
#include "session/books/sampling_level.h"

#define SAMPLED_FASTER      10u // with --sample an event costs a program's own pool 1 ns
#define UNSAMPLED_BYTES_MAX ((uint64_t)1 << 51) // of one lane: thousands of them do not overflow

enum err
lane_counters_take(struct lane_reader *reader, struct aggregator *aggregator, uint64_t clock_ms)
{
    struct lane_header *lane = reader->consumer.lane;
    struct aggregator_sampling *sampling = &aggregator->sampling;
    const uint64_t most = claimed_counter_most(clock_ms);
    uint64_t unknown_frees = 0;
    const struct {
        const _Atomic uint64_t *now;
        uint64_t most;
        uint64_t *known;
        uint64_t *sum;
    } counters[] = {
        {&lane->unsampled_allocations, SAMPLED_FASTER * most, &reader->unsampled_allocations,
         &sampling->unsampled_allocations},
        {&lane->unsampled_bytes, UNSAMPLED_BYTES_MAX, &reader->unsampled_bytes,
         &sampling->unsampled_bytes},
        {&lane->missed_allocations, most, &reader->missed_allocations,
         &aggregator->missed_allocations},
        {&lane->unknown_frees, most, &reader->unknown_frees, &unknown_frees},
        {&lane->missed_frees, most, &reader->missed_frees, &aggregator->missed_frees},
    };
    // Relaxed: as below.
    const uint32_t level = atomic_load_explicit(&lane->highest_level, memory_order_relaxed);
    if (level > LANE_LEVEL_MAX) {
        return ERR_CORRUPT;
    }
    sampling->lane_interval_bytes =
        max_u64(sampling->lane_interval_bytes, sampling_interval(level));
    enum err err = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
        // Relaxed: sums that order nothing else.
        const uint64_t now = atomic_load_explicit(counters[i].now, memory_order_relaxed);
        if (!claimed_counter_take(now, counters[i].most, counters[i].known, counters[i].sum)) {
            err = ERR_CORRUPT;
        }
    }
    reader->events += unknown_frees; // these have no records
    aggregator_count_unknown(aggregator, reader->thread.process, unknown_frees);
    return err;
}
