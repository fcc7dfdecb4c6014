// SPDX-License-Identifier: MIT
#include "profile/growth/growth_floor.h"

#include <math.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/containers/vec.h"
#include "profile/growth/growth_gains.h"
#include "profile/growth/growth_level.h"

enum {
    RISES_MAX = 64,   // a rise is at least this part of what the floor gained
    MIDDLE_SHARE = 8, // at least this part of the rise is in the middle half of the stretch
    FADED_TIMES = 4,  // the second half of a stretch gains at least a fourth of what the first did
    SURE_NOISE = 3,   // times the noise: a rise that is sure
    SINGLE_STEPS = 4, // rises at once that are a step
    FAINT_DIVISOR = 10,
    PARTS = 16, // of a trend
    PAIRS = PARTS * (PARTS - 1) / 2,
    TREND_STEPS_MIN = 2 * PARTS,
};

// What the floor did. The arrays have one item for each slice.
struct floor {
    struct u64_vec bytes;
    struct u64_vec rises; // 0 but where it had risen by `least` since the last one
    double least;
    double noise;
    size_t first;       // of the last stretch of rises
    struct gains gains; // in the stretch
};

static void floor_release(struct floor *floor)
{
    u64_vec_release(&floor->bytes);
    u64_vec_release(&floor->rises);
}

static MUST_USE enum err find_floor(const struct growth_history *h, struct floor *out)
{
    TRY(u64_vec_resize(&out->bytes, h->count));
    TRY(u64_vec_resize(&out->rises, h->count));
    uint64_t lowest = UINT64_MAX;
    for (size_t i = h->count; i-- > 0;) {
        lowest = min_u64(lowest, h->live_bytes[i]);
        out->bytes.items[i] = lowest;
    }
    // The room for the rises is the scratch memory of the median before.
    const size_t half = h->count / 2;
    for (size_t i = half; i < h->count; i++) {
        out->rises.items[i] = h->live_bytes[i] - out->bytes.items[i];
    }
    out->noise = level_middle(out->rises.items + half, h->count - half);
    const uint64_t gained = out->bytes.items[h->count - 1] - out->bytes.items[0];
    out->least = fmax(fmax(out->noise, (double)gained / RISES_MAX), 1);
    uint64_t mark = out->bytes.items[0];
    for (size_t i = 0; i < h->count; i++) {
        const uint64_t rise = out->bytes.items[i] - mark;
        out->rises.items[i] = (double)rise >= out->least ? rise : 0;
        mark += out->rises.items[i];
    }
    return ERR_OK;
}

// Whether most of the rise came in steps. Then there is no rate to compare.
static bool is_stepwise(const struct growth_history *h, const struct floor *f)
{
    uint64_t in_steps = 0;
    uint64_t all = 0;
    for (size_t i = f->first + 1; i < h->count; i++) {
        const uint64_t rise = f->bytes.items[i] - f->bytes.items[i - 1];
        in_steps += (double)rise >= SINGLE_STEPS * f->least ? rise : 0;
        all += rise;
    }
    return 2 * in_steps > all;
}

// The floor in the stretch's part with the index `eighth`.
static double floor_at(const struct growth_history *h, const struct floor *f, size_t eighth)
{
    const size_t slice = f->first + (h->count - 1 - f->first) * eighth / 8;
    return (double)f->bytes.items[slice];
}

// What most of the rise in the last half of the stretch was, if it was a single short one.
static uint64_t last_step(const struct growth_history *h, const struct floor *f)
{
    const size_t half = f->first + (h->count - f->first) / 2;
    return is_stepwise(h, f) ? 0 : gains_find_step(h, f->rises.items, half).bytes;
}

// Whether the floor rose by a single step in the last half of the stretch, and hardly before, but
// for a start. Else the step is one of many.
static bool is_one_step(const struct growth_history *h, const struct floor *f)
{
    const double before = floor_at(h, f, 4) - floor_at(h, f, 1);
    return (double)last_step(h, f) > 2 * before;
}

// The length of the longest tail in which the floor gained less than a tenth of what it gains on
// average.
static size_t faint_tail(const struct growth_history *h, const struct floor *f)
{
    const size_t last = h->count - 1;
    const uint64_t highest = f->bytes.items[last];
    const double rate =
        (double)(highest - f->bytes.items[f->first]) / (double)(h->count - f->first);
    size_t longest = 0;
    for (size_t tail = 1; tail < last - f->first; tail++) {
        const double gained = (double)(highest - f->bytes.items[last - tail]);
        longest = gained * FAINT_DIVISOR < rate * (double)tail ? tail : longest;
    }
    return longest;
}

// Whether the rises go on to the end, as far as their gaps tell.
static bool goes_on(const struct growth_history *h, const struct floor *f)
{
    const size_t tail = faint_tail(h, f);
    const struct gains before = gains_find(f->rises.items, f->first, h->count - tail);
    return tail < 2 * h->step || 2 * tail <= 5 * before.longest_gap ||
           tail * TAIL_DIVISOR < h->count;
}

static enum growth_confidence confidence_of(const struct growth_history *h, const struct floor *f)
{
    const size_t tail = h->count - 1 - f->gains.last;
    const double middle = floor_at(h, f, 6) - floor_at(h, f, 2);
    const double first_half = floor_at(h, f, 4) - floor_at(h, f, 0);
    const double second_half = floor_at(h, f, 8) - floor_at(h, f, 4);
    enum growth_confidence confidence =
        gains_confidence(f->gains.moments, (h->count - f->first) / h->step);
    if (tail > 2 * h->step && tail > 4 * f->gains.longest_gap && 20 * tail > h->count) {
        return CONFIDENCE_LOW;
    }
    if (confidence == CONFIDENCE_HIGH &&
        (middle < SURE_NOISE * f->noise || 2 * second_half < first_half || last_step(h, f) > 0)) {
        return CONFIDENCE_MEDIUM;
    }
    return confidence;
}

// Whether the level never was in the first half of the stretch as high as it always is at its end.
static bool is_record(const struct growth_history *h, const struct floor *f)
{
    const size_t half = f->first + (h->count - f->first) / 2;
    uint64_t highest = 0;
    for (size_t i = f->first; i < half; i++) {
        highest = max_u64(highest, h->live_bytes[i]);
    }
    return (double)highest <= floor_at(h, f, 7);
}

static bool is_growing(const struct growth_history *h, struct floor *f)
{
    f->first = gains_last_stretch(h, f->rises.items, 0);
    f->gains = gains_find(f->rises.items, f->first, h->count);
    f->first = f->gains.first;
    if (f->gains.moments < GAINS_MIN || h->count - f->first < WINDOW_STEPS_MIN * h->step ||
        (h->count - f->first) * LATE_DIVISOR < h->count || !goes_on(h, f)) {
        return false;
    }
    const uint64_t before = f->first > 0 ? f->bytes.items[f->first - 1] : 0;
    if (level_has_come_down(h, f->first, before)) {
        return false;
    }
    const double middle = floor_at(h, f, 6) - floor_at(h, f, 2);
    const double first_half = floor_at(h, f, 4) - floor_at(h, f, 0);
    const double second_half = floor_at(h, f, 8) - floor_at(h, f, 4);
    return is_record(h, f) && !is_one_step(h, f) && middle >= f->noise &&
           middle * MIDDLE_SHARE >= first_half + second_half &&
           (is_stepwise(h, f) || second_half * FADED_TIMES >= first_half);
}

// Whether the medians of the parts of the slices from `first` on rise, nearly one after the other,
// and to the end.
static bool has_trend(const struct growth_history *h, size_t first, uint64_t *scratch)
{
    double medians[PARTS];
    size_t rising = 0;
    for (size_t i = 0; i < PARTS; i++) {
        const size_t from = first + (h->count - first) * i / PARTS;
        const size_t to = first + (h->count - first) * (i + 1) / PARTS;
        medians[i] = level_of(h->live_bytes, from, to, scratch).median;
        for (size_t before = 0; before < i; before++) {
            rising += medians[before] < medians[i];
        }
    }
    const double half = medians[PARTS / 2];
    const double last = medians[PARTS - 1];
    const double lately = last - medians[PARTS - 1 - PARTS / 8];
    return 10 * rising >= (size_t)9 * PAIRS && 16 * (last - half) >= last &&
           4 * (last - half) >= half - medians[0] && 4 * 8 * lately >= last - medians[0] &&
           !level_has_come_down(h, first, (uint64_t)medians[0]);
}

// Judge a level that swings so much that its floor hides its growth. Return the first slice of the
// time in which it grows; the count if it does not.
static size_t find_trend(const struct growth_history *h, const struct floor *f, uint64_t *scratch)
{
    const size_t firsts[] = {0, h->count / 2};
    for (size_t i = 0; i < ARRAY_LEN(firsts); i++) {
        if ((h->count - firsts[i]) / h->step >= TREND_STEPS_MIN &&
            f->noise * RISES_MAX >= (double)h->live_bytes[h->count - 1] &&
            has_trend(h, firsts[i], scratch)) {
            return firsts[i];
        }
    }
    return h->count;
}

enum err
growth_floor_judge(const struct growth_history *h, bool *is_growing_out, struct growth_verdict *out)
{
    CLEANUP(floor_release) struct floor floor = {0};
    TRY(find_floor(h, &floor));
    *is_growing_out = is_growing(h, &floor);
    if (*is_growing_out) {
        *out = (struct growth_verdict){.class = GROWTH_GROWING,
                                       .confidence = confidence_of(h, &floor),
                                       .latest_birth = gains_find(h->birth_bytes, 0, h->count).last,
                                       .grew_until = floor.gains.last + 1,
                                       .is_replaced = true};
        const size_t half = floor.first + (h->count - floor.first) / 2;
        const struct gains_step none = {0};
        gains_find_slope(h, floor.rises.items, &none, is_stepwise(h, &floor) ? floor.first : half,
                         out);
        return ERR_OK;
    }
    const size_t first = find_trend(h, &floor, floor.rises.items);
    *is_growing_out = first < h->count;
    if (*is_growing_out) {
        *out = (struct growth_verdict){.class = GROWTH_GROWING,
                                       .confidence = CONFIDENCE_MEDIUM,
                                       .latest_birth = gains_find(h->birth_bytes, 0, h->count).last,
                                       .grew_until = h->count,
                                       .is_replaced = true};
        const struct gains_step none = {0};
        gains_find_slope(h, floor.rises.items, &none, first + (h->count - first) / 2, out);
    }
    return ERR_OK;
}
