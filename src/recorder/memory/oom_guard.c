// SPDX-License-Identifier: MIT
#include "recorder/memory/oom_guard.h"

#include "base/clock.h"
#include "base/minmax.h"

enum {
    LOOK_MS = 50,      // far from the limit, too: a program may allocate a GiB in a second
    NEAR_PART = 16,    // of the limit
    NEAR_MS = 10000,   // growth comes in bursts
    GROWTH_PART = 512, // that is worth another checkpoint
    AGAIN_MS = 1000,
    STALL_PERCENT = 10,
    SAVE_AGAIN_MS = 10000, // between two checkpoints of rests
};

#define TOUCHED_PER_MS ((UINT64_C(8) << 30) / MS_PER_S) // bytes, by a program of some threads

bool oom_guard_is_due(const struct oom_guard *guard, bool is_resting, uint64_t now_ms)
{
    return now_ms >= (is_resting ? guard->rest_next_ms : guard->next_ms);
}

// Return the growth of a second at the rate since the latest look.
static uint64_t
growth_of_a_second(const struct oom_guard *guard, uint64_t used_bytes, uint64_t now_ms)
{
    if (!guard->has_looked || used_bytes <= guard->last_bytes) {
        return 0;
    }
    const uint64_t passed_ms = max_u64(now_ms - guard->last_ms, 1);
    return (used_bytes - guard->last_bytes) / passed_ms * MS_PER_S;
}

// Note how long nothing has been recorded. Return whether a checkpoint is to have what was.
// `lasts_ms`: how long what is left lasts at least.
static bool
look_at_rest(struct oom_guard *guard, uint64_t lasts_ms, uint64_t events, uint64_t now_ms)
{
    if (!guard->has_looked || events != guard->events) {
        guard->events = events;
        guard->changed_ms = now_ms;
        guard->is_saved = false;
    }
    const bool may_save = guard->saved_ms == 0 || now_ms >= guard->saved_ms + SAVE_AGAIN_MS;
    const bool is_due = lasts_ms < MS_PER_S && !guard->is_saved && may_save &&
                        now_ms >= guard->changed_ms + MS_PER_S;
    guard->is_saved = guard->is_saved || is_due;
    guard->saved_ms = is_due ? now_ms : guard->saved_ms;
    guard->rest_next_ms = next_whole_u64(now_ms, MS_PER_S);
    if (!guard->is_saved) {
        guard->rest_next_ms = min_u64(now_ms + lasts_ms, guard->rest_next_ms);
    }
    return is_due;
}

bool oom_guard_look(struct oom_guard *guard,
                    const struct memory_headroom *headroom,
                    uint64_t events,
                    uint64_t now_ms,
                    bool *just_near)
{
    const uint64_t limit = headroom->limit_bytes;
    const uint64_t used = headroom->used_bytes;
    const uint64_t left = limit - used;
    const bool was_near = guard->is_near;
    const uint64_t growth = growth_of_a_second(guard, used, now_ms);
    const bool is_stalled = headroom->stall_percent >= STALL_PERCENT;
    if (limit > 0 && (is_stalled || left < growth || left < limit / NEAR_PART)) {
        guard->near_until_ms = now_ms + NEAR_MS;
    }
    guard->is_near = now_ms < guard->near_until_ms;
    const uint64_t lasts_ms = limit == 0 ? MS_PER_S : max_u64(left / TOUCHED_PER_MS, LOOK_MS);
    const bool is_saving = look_at_rest(guard, lasts_ms, events, now_ms);
    guard->last_ms = now_ms;
    guard->last_bytes = used;
    guard->has_looked = true;
    guard->next_ms = now_ms + LOOK_MS;
    *just_near = guard->is_near && !was_near;
    const bool has_grown = used > guard->written_bytes + limit / GROWTH_PART;
    if (!guard->is_near || (was_near && (!has_grown || now_ms < guard->written_ms + AGAIN_MS))) {
        return is_saving;
    }
    guard->written_ms = now_ms;
    guard->written_bytes = used;
    return true;
}
