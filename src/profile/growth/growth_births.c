// SPDX-License-Identifier: MIT
#include "profile/growth/growth_births.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/containers/vec.h"
#include "profile/growth/growth_gains.h"
#include "profile/growth/growth_level.h"

enum {
    QUARTERS = 4,
    TAIL_GAPS = 2,       // births that stopped ended longer ago than twice their longest gap
    START_DIVISOR = 8,   // of the process's life
    BOUNDED_DIVISOR = 4, // of the births in the window: smaller growth is level
    FAINT_DIVISOR = 10,  // of a rate: what grows at a fifth of its rate still grows
    SLOWER_TIMES = 4, // a last quarter with fewer births than that part of the second's is unsure
    PAST_SHARE = 4,   // births before the window that outweigh those in it
};

static enum growth_class class_of_past(const struct growth_history *h, size_t last_birth)
{
    return last_birth + h->step <= (h->count + START_DIVISOR - 1) / START_DIVISOR ? GROWTH_START_UP
                                                                                  : GROWTH_STOPPED;
}

// The number of slices without a birth at the end.
static size_t tail_of(const struct growth_history *h, size_t last_birth)
{
    return last_birth + h->step < h->count ? h->count - last_birth - h->step : 0;
}

// Whether a tail of slices with hardly a birth, after `births`, means that births have ended.
static bool is_end(const struct growth_history *h, size_t tail, const struct gains *births)
{
    return tail >= 2 * h->step && tail > TAIL_GAPS * births->longest_gap &&
           tail * TAIL_DIVISOR >= h->count;
}

// Whether about as much was held long before the first of the blocks that are left.
static bool was_replaced(const struct growth_history *h, const struct gains *births)
{
    const uint64_t end_bytes = h->live_bytes[h->count - 1];
    const size_t held_from = level_held_from(h, end_bytes - end_bytes / 10);
    return births->first > held_from && (births->first - held_from) * TAIL_DIVISOR > h->count;
}

// The verdict for births that have ended `tail` slices before the end, or before others that only
// replace blocks.
static struct growth_verdict
past_of(const struct growth_history *h, const struct gains *births, size_t tail)
{
    return (struct growth_verdict){
        .class = was_replaced(h, births) ? GROWTH_BOUNDED : class_of_past(h, births->last),
        .confidence = gains_confidence(tail / h->step, h->count / h->step),
        .latest_birth = births->last,
    };
}

// Whether births ended long ago, but for those of a few young blocks that do not raise the level:
// the others are replaced, too, but are freed in time.
static bool
has_settled(const struct growth_history *h, struct u64_vec *scratch, struct growth_verdict *out)
{
    struct gains before = {0};
    for (size_t i = 0; i < h->count; i++) {
        if (h->birth_bytes[i] == 0) {
            continue;
        }
        const size_t gap = before.moments > 0 ? i - before.last : 0;
        if (gap > 2 * h->step && 2 * gap > before.longest_gap && gap * TAIL_DIVISOR >= h->count) {
            const struct gains after = gains_find(h->birth_bytes, i, h->count);
            const double level = level_of(h->live_bytes, before.last + 1, i, scratch->items).median;
            const double rise = (double)h->live_bytes[h->count - 1] - level;
            if (after.bytes <= before.bytes / PAST_SHARE && rise < (double)after.bytes / 2) {
                *out = past_of(h, &before, gap);
                out->confidence =
                    gap > TAIL_GAPS * before.longest_gap ? out->confidence : CONFIDENCE_LOW;
                return true;
            }
        }
        before.longest_gap = max_u64(before.longest_gap, gap);
        before.first = before.moments == 0 ? i : before.first;
        before.last = i;
        before.moments++;
        before.bytes += h->birth_bytes[i];
    }
    return false;
}

// The window from the first relevant birth to the end.
struct window {
    size_t first;
    struct gains births;
    uint64_t floor_bytes;  // the lowest level from just before the window on
    uint64_t growth_bytes; // from the floor to the level at the end
};

static struct window window_from(const struct growth_history *h, size_t first)
{
    struct window window = {.first = first, .births = gains_find(h->birth_bytes, first, h->count)};
    window.floor_bytes = first > 0 ? h->live_bytes[first - 1] : 0;
    for (size_t i = first; i < h->count; i++) {
        const uint64_t level = h->live_bytes[i];
        window.floor_bytes = level < window.floor_bytes ? level : window.floor_bytes;
    }
    window.growth_bytes = h->live_bytes[h->count - 1] - window.floor_bytes;
    return window;
}

static size_t quarter_begin(const struct growth_history *h, const struct window *w, size_t quarter)
{
    return w->first + (h->count - w->first) * quarter / QUARTERS;
}

// The births in each quarter of the window.
struct quarters {
    double births[QUARTERS];
    size_t fourth_begin;
};

static struct quarters quarters_of(const struct growth_history *h, const struct window *w)
{
    struct quarters quarters = {.fourth_begin = quarter_begin(h, w, 3)};
    for (size_t q = 0; q < QUARTERS; q++) {
        quarters.births[q] =
            (double)gains_find(h->birth_bytes, quarter_begin(h, w, q), quarter_begin(h, w, q + 1))
                .bytes;
    }
    return quarters;
}

// The length of the longest tail whose births are below a tenth of `rate`.
static size_t faint_tail(const struct growth_history *h, size_t first, double rate)
{
    double bytes = 0;
    size_t longest = 0;
    for (size_t tail = 1; tail < h->count - first; tail++) {
        bytes += (double)h->birth_bytes[h->count - tail];
        longest = bytes < rate * (double)tail / FAINT_DIVISOR ? tail : longest;
    }
    return longest;
}

// If the births in the window, at `rate` before, ended long ago except for noise, set *out. Only
// the gaps behind `from` count.
static bool has_faded(const struct growth_history *h,
                      size_t from,
                      double rate,
                      size_t moments_min,
                      struct growth_verdict *out)
{
    const size_t tail = faint_tail(h, from, rate);
    const struct gains before = gains_find(h->birth_bytes, from, h->count - tail);
    if (before.moments < moments_min || !is_end(h, tail, &before)) {
        return false;
    }
    *out = past_of(h, &before, tail);
    return true;
}

// Whether the level rises in accordance with the births.
static bool is_growing(const struct growth_history *h,
                       const struct window *w,
                       const struct quarters *quarters,
                       struct u64_vec *scratch)
{
    const struct level third =
        level_of(h->live_bytes, quarter_begin(h, w, 2), quarters->fourth_begin, scratch->items);
    const struct level fourth =
        level_of(h->live_bytes, quarters->fourth_begin, h->count, scratch->items);
    const double rise = fourth.median - third.median;
    const double noise = third.noise > fourth.noise ? third.noise : fourth.noise;
    const double born = quarters->births[2];
    if (rise + noise < born / 2) {
        return false; // as much was freed as was born
    }
    return quarters->births[1] >= born / 3 || (rise >= 2 * noise && born >= rise / 4);
}

// The verdict for a window that does not grow, or is too short: `class`, unless nearly all births
// are older than the window.
static struct growth_verdict judge_rest(const struct growth_history *h,
                                        const struct window *w,
                                        enum growth_class class,
                                        enum growth_confidence confidence)
{
    const struct gains before = gains_find(h->birth_bytes, 0, w->first);
    if (before.bytes / PAST_SHARE > w->births.bytes) {
        return (struct growth_verdict){.class = class_of_past(h, before.last),
                                       .confidence = CONFIDENCE_LOW,
                                       .latest_birth = before.last};
    }
    return (struct growth_verdict){
        .class = class, .confidence = confidence, .latest_birth = w->births.last};
}

static struct growth_verdict
judge_windows(const struct growth_history *h, const struct gains *all, struct u64_vec *scratch)
{
    for (size_t first = all->first;;) {
        const struct window w = window_from(h, first);
        const size_t steps = (h->count - first) / h->step;
        const enum growth_confidence confidence = gains_confidence(w.births.moments, steps);
        struct growth_verdict verdict;
        if (first > 0 && w.growth_bytes < w.births.bytes / BOUNDED_DIVISOR) {
            const double rate = (double)w.births.bytes / (double)(h->count - first);
            if (has_faded(h, first, rate, 1, &verdict)) {
                return verdict;
            }
            return judge_rest(h, &w, GROWTH_BOUNDED,
                              gains_confidence(h->count / h->step, h->count / h->step));
        }
        if (level_has_come_down(h, w.first, w.floor_bytes)) {
            return judge_rest(h, &w, level_cycles(h), confidence);
        }
        if (steps < WINDOW_STEPS_MIN || (h->count - first) * LATE_DIVISOR < h->count) {
            return judge_rest(h, &w, GROWTH_LATE, CONFIDENCE_LOW);
        }
        const struct quarters quarters = quarters_of(h, &w);
        if (quarters.births[3] == 0) {
            return judge_rest(h, &w, GROWTH_STOPPED, CONFIDENCE_LOW);
        }
        if (quarters.births[2] == 0) {
            first = gains_find(h->birth_bytes, quarters.fourth_begin, h->count).first;
            continue; // less than a quarter remains, so the loop ends
        }
        if (w.births.moments < GAINS_MIN) {
            return judge_rest(h, &w, GROWTH_LATE, CONFIDENCE_LOW);
        }
        const double rate = (double)w.births.bytes / (double)(h->count - first);
        if (!is_growing(h, &w, &quarters, scratch)) {
            if (has_faded(h, first, rate, 1, &verdict)) {
                return verdict;
            }
            return judge_rest(h, &w, GROWTH_BOUNDED, confidence);
        }
        // A pause before the half that grew says nothing about a pause after it.
        const size_t half = quarter_begin(h, &w, 2);
        const double third = (double)(quarters.fourth_begin - half);
        if (has_faded(h, first, quarters.births[2] / third, GAINS_MIN, &verdict) ||
            has_faded(h, half, quarters.births[2] / third, GAINS_MIN, &verdict) ||
            has_faded(h, first, quarters.births[1] / third, GAINS_MIN, &verdict)) {
            return verdict;
        }
        const size_t lately = gains_find(h->birth_bytes, half, quarters.fourth_begin).moments;
        const size_t stretch = gains_last_stretch(h, h->birth_bytes, half);
        const struct gains_step step = gains_find_step(h, h->birth_bytes, stretch);
        const bool is_unsure = lately < GAINS_MIN || step.bytes > 0 ||
                               SLOWER_TIMES * quarters.births[3] < quarters.births[1];
        verdict = (struct growth_verdict){.class = GROWTH_GROWING,
                                          .confidence = is_unsure ? CONFIDENCE_LOW : confidence,
                                          .latest_birth = all->last,
                                          .grew_until = all->last + 1};
        gains_find_slope(h, h->birth_bytes, &step, stretch, &verdict);
        return verdict;
    }
}

enum err growth_births_judge(const struct growth_history *h, struct growth_verdict *out)
{
    const struct gains all = gains_find(h->birth_bytes, 0, h->count);
    const size_t tail = tail_of(h, all.last);
    if (is_end(h, tail, &all)) {
        *out = past_of(h, &all, tail);
        return ERR_OK;
    }
    CLEANUP(u64_vec_release) struct u64_vec scratch = {0};
    TRY(u64_vec_resize(&scratch, h->count));
    if (!has_settled(h, &scratch, out)) {
        *out = judge_windows(h, &all, &scratch);
    }
    return ERR_OK;
}
