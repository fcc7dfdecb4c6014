// SPDX-License-Identifier: MIT
#include "recorder/lanes/hold_budget.h"

#include "base/minmax.h"

enum {
    PEAK_SHIFT = 8,
    SMALL_PEAK_SHIFT = 6,
    SMALL_MAX = 1024, // bytes
    FEWEST_AWAKE = 2, // a thread may wake up before the next pass
    FORGET_SHIFT = 3, // the recent number of threads falls by an 8th in a pass
};

void hold_budget_begin_pass(struct hold_budget *budget, bool leaves_events)
{
    budget->leaves_events = leaves_events;
    budget->awake_count = 0;
    budget->idle_bytes = 0;
    budget->held_at_most_bytes = budget->ended_due_bytes;
    budget->ended_due_bytes = leaves_events ? budget->ended_due_bytes : 0;
}

void hold_budget_add(struct hold_budget *budget,
                     struct lane_budget *lane,
                     const struct nursery *nursery,
                     bool is_empty)
{
    // Acquire: pairs with the thread's release; the budget is of that count or a later one.
    const uint32_t count = atomic_load_explicit(&nursery->budget_count, memory_order_acquire);
    const uint64_t said = min_u64(
        atomic_load_explicit(&nursery->budget_bytes, memory_order_relaxed), budget->most_bytes);
    const uint32_t taken = count - lane->count;
    const uint64_t missed = taken > 1 ? max_u64(budget->each_bytes, budget->before_bytes) : 0;
    const uint64_t now = is_empty ? 0 : said;
    const uint64_t latest =
        taken > 0 ? max_u64(said, missed) : now; // it may have held blocks since
    const uint64_t recent = max_u64(latest, lane->bytes);
    const uint64_t most = max_u64(recent, lane->due_bytes);
    budget->held_at_most_bytes += most;
    budget->awake_count += taken != 0;
    budget->idle_bytes += taken != 0 ? 0 : now;
    lane->count = count;
    lane->bytes = now;
    lane->due_bytes = budget->leaves_events ? most : recent;
}

static uint64_t share_of_peak(uint64_t peak_bytes)
{
    return max_u64(peak_bytes >> PEAK_SHIFT, min_u64(peak_bytes >> SMALL_PEAK_SHIFT, SMALL_MAX));
}

void hold_budget_end_pass(struct hold_budget *budget, uint64_t peak_bytes, bool is_shared)
{
    const uint32_t faded = budget->recent_awake - (budget->recent_awake >> FORGET_SHIFT);
    budget->recent_awake = (uint32_t)max_u64(budget->awake_count, faded);
    const uint64_t among = max_u64(budget->recent_awake, FEWEST_AWAKE);
    const uint64_t all_bytes = share_of_peak(peak_bytes);
    const uint64_t free_bytes = all_bytes - min_u64(budget->idle_bytes, all_bytes);
    budget->before_bytes = budget->each_bytes;
    budget->each_bytes = is_shared ? free_bytes / among : 0;
    budget->most_bytes = max_u64(budget->most_bytes, budget->each_bytes);
}
