// SPDX-License-Identifier: MIT
#include "profile/growth/growth_shape.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/containers/vec.h"
#include "profile/growth/growth_births.h"
#include "profile/growth/growth_floor.h"
#include "profile/growth/growth_gains.h"
#include "profile/growth/growth_level.h"
#include "profile/growth/growth_work.h"

enum {
    STEPS_MIN = 8, // slices, or steps of slices, for a verdict
    CYCLES_MIN = 2,
    DIP_TIMES = 2,           // lower than before and after
    START_DIVISOR = 4,       // of the slices: a start takes no longer
    STALL_DIVISOR = 64,      // of the slices: longer times without work are no stalls
    SMOOTHED_STEPS_MIN = 64, // in shorter histories a step may be a whole tooth
    UNTIL_DIVISOR = 20, // of the process's life: growth that ended longer before the end says so
    LONG_DIVISOR = 4,   // of the process's life: growth for that long is not a start
    OTHERS_DIVISOR = 4, // of the allocations that grew: others that show that there was work
};

// Whether the level had risen and fallen before any of the blocks that are left, as often as not by
// chance. If they are renewed, only bursts say more than that.
static bool is_cycle(const struct growth_history *h, const struct growth_verdict *verdict)
{
    const size_t first_birth = gains_find(h->birth_bytes, 0, h->count).first;
    return level_count_cycles(h, first_birth) >= CYCLES_MIN &&
           (verdict->class != GROWTH_BOUNDED || level_is_deep(h) ||
            level_cycles(h) == GROWTH_BURSTS);
}

// Whether the history grows to its end; else *out is what its births say.
static MUST_USE enum err judge_alone(const struct growth_history *h, struct growth_verdict *out)
{
    struct growth_verdict by_floor;
    bool is_growing = false;
    TRY(growth_births_judge(h, out));
    if (is_cycle(h, out)) {
        *out = (struct growth_verdict){.class = level_cycles(h),
                                       .confidence =
                                           gains_confidence(h->count / h->step, h->count / h->step),
                                       .latest_birth = out->latest_birth};
        return ERR_OK;
    }
    if (out->class == GROWTH_GROWING && out->confidence == CONFIDENCE_HIGH) {
        return ERR_OK;
    }
    TRY(growth_floor_judge(h, &is_growing, &by_floor));
    if (is_growing && (out->class != GROWTH_GROWING || by_floor.confidence > out->confidence)) {
        *out = by_floor;
    }
    return ERR_OK;
}

// Whether the process did more than allocate what grew.
static bool has_other_work(const struct growth_history *h, const struct growth_verdict *verdict)
{
    const uint64_t own = verdict->is_replaced ? h->allocations : h->kept;
    uint64_t all = 0;
    for (size_t i = 0; i < h->count; i++) {
        all += h->work[i];
    }
    return excess_u64(all, own) >= own / OTHERS_DIVISOR + 1;
}

// What grew as long as there was work: *inner is about the working time, *out about all of it.
static MUST_USE enum err judge_past(const struct growth_history *h,
                                    const struct working_time *working,
                                    const struct growth_verdict *inner,
                                    struct growth_verdict *out)
{
    const size_t until = (size_t)working->slices.items[inner->grew_until - 1] + 1;
    const size_t calm = h->count - until;
    const bool is_to_end = calm < 2 * h->step || calm * UNTIL_DIVISOR < h->count;
    if (!is_to_end && !has_other_work(h, inner)) {
        TRY(growth_births_judge(h, out));
        out->confidence = CONFIDENCE_LOW;
        out->is_idle_since = true;
        return ERR_OK;
    }
    *out = *inner;
    out->latest_birth = (size_t)working->slices.items[inner->latest_birth];
    out->grew_until = is_to_end ? h->count : until;
    if (!is_to_end) {
        const bool is_long = until * LONG_DIVISOR >= h->count;
        const enum growth_confidence most = is_long ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
        out->confidence = out->confidence < most ? out->confidence : most;
    }
    return ERR_OK;
}

// A slice may end between the free of a block and the allocation of the larger one that replaces
// it, and a stopped process may remain there. So a level that falls to less than half and is back
// at the next work, soon, has not fallen.
static MUST_USE enum err fill_dips(const struct growth_history *h, struct u64_vec *out)
{
    const size_t longest = h->work != NULL ? h->count / STALL_DIVISOR : 0;
    TRY(u64_vec_resize(out, h->count));
    memcpy(out->items, h->live_bytes, h->count * sizeof(*out->items));
    for (size_t i = h->step; i < h->count; i++) {
        const uint64_t before = out->items[i - h->step];
        size_t next = i + h->step;
        while (next < h->count && next - i < longest && h->work[next] == 0) {
            next++;
        }
        if (next >= h->count) {
            break;
        }
        const uint64_t level = min_u64(before, h->live_bytes[next]);
        if (DIP_TIMES * h->live_bytes[i] < level) {
            for (; i < next; i++) {
                out->items[i] = max_u64(out->items[i], level);
            }
            i--;
        }
    }
    return ERR_OK;
}

// Judge a history with births, in the time with work and without dips.
static MUST_USE enum err judge_smoothed(const struct growth_history *raw,
                                        struct growth_verdict *out)
{
    CLEANUP(u64_vec_release) struct u64_vec levels = {0};
    CLEANUP(working_time_release) struct working_time working = {0};
    struct growth_history h = *raw;
    if (h.count / h.step >= SMOOTHED_STEPS_MIN) {
        TRY(fill_dips(raw, &levels));
        h.live_bytes = levels.items;
    }
    TRY(working_time_find(&h, &working));
    if (working.idle_slices > 0 && working.history.count / h.step >= STEPS_MIN) {
        struct growth_verdict inner;
        TRY(judge_alone(&working.history, &inner));
        if (inner.class == GROWTH_GROWING) {
            return judge_past(&h, &working, &inner, out);
        }
        *out = inner;
        out->latest_birth = (size_t)working.slices.items[inner.latest_birth];
        return ERR_OK;
    }
    TRY(judge_alone(&h, out));
    out->grew_until = out->class == GROWTH_GROWING ? h.count : 0;
    return ERR_OK;
}

// Whether most of what was live has stayed, up to the time when half of the unfreed memory was
// there. Else blocks are replaced by larger ones.
static bool is_of_blocks_that_stay(const struct growth_history *h)
{
    const uint64_t half = gains_find(h->birth_bytes, 0, h->count).bytes / 2;
    double stayed = 0; // summed over the slices
    double live = 0;
    uint64_t staying = h->birth_bytes[0];
    for (size_t i = 0; i + 1 < h->count && staying < half; i++) {
        stayed += (double)staying;
        live += (double)h->live_bytes[i];
        staying += h->birth_bytes[i + 1];
    }
    return 2 * stayed > live;
}

// A level that rises by stacks that left hardly a block before is that of a start, or may be: how
// long a start takes depends on the machine.
static void doubt_start(const struct growth_history *h, struct growth_verdict *verdict)
{
    if (!h->has_stacks || verdict->class != GROWTH_GROWING || !is_of_blocks_that_stay(h)) {
        return;
    }
    if (h->repeats < GAINS_MIN) {
        *verdict =
            (struct growth_verdict){.class = GROWTH_UNKNOWN, .latest_birth = verdict->latest_birth};
        return;
    }
    const enum growth_confidence most = gains_confidence(h->repeats, h->count / h->step);
    verdict->confidence = verdict->confidence < most ? verdict->confidence : most;
}

// The slices before the program's first allocation anywhere: it is started and linked then.
static size_t find_start(const struct growth_history *h)
{
    size_t start = 0;
    while (h->work != NULL && start + h->step < h->count && h->work[start] == 0) {
        start++;
    }
    return start * START_DIVISOR <= h->count ? start - start % h->step : 0;
}

enum err growth_judge(const struct growth_history *whole, struct growth_verdict *out)
{
    const size_t start = find_start(whole);
    const struct growth_history h = {.count = whole->count - start,
                                     .live_bytes = whole->live_bytes + start,
                                     .birth_bytes = whole->birth_bytes + start,
                                     .work = whole->work != NULL ? whole->work + start : NULL,
                                     .allocations = whole->allocations,
                                     .kept = whole->kept,
                                     .has_stacks = whole->has_stacks,
                                     .repeats = whole->repeats,
                                     .step = whole->step};
    const struct gains births = gains_find(h.birth_bytes, 0, h.count);
    *out = (struct growth_verdict){.class = GROWTH_UNKNOWN, .latest_birth = births.last};
    if (h.allocations == 1) {
        out->class = GROWTH_ONCE;
        out->confidence = CONFIDENCE_HIGH;
    } else if (h.count / h.step >= STEPS_MIN && births.moments > 0) {
        TRY(judge_smoothed(&h, out));
        doubt_start(&h, out);
    }
    out->latest_birth += births.moments > 0 ? start : 0;
    out->grew_until += out->grew_until > 0 ? start : 0;
    return ERR_OK;
}
