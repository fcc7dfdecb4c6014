// SPDX-License-Identifier: MIT
#include "profile/time/growth_shape.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/order.h"
#include "host/containers/vec.h"

enum {
    QUARTERS = 4,
    STEPS_MIN = 8,        // slices, or steps of slices, for a verdict
    WINDOW_STEPS_MIN = 6, // steps of a window
    BIRTHS_MIN = 4,       // slices with births in a window
    TAIL_DIVISOR = 10,    // births that stopped ended before the last tenth,
    TAIL_GAPS = 2,        // and longer ago than twice their longest gap
    START_DIVISOR = 8,    // of the process's life
    BOUNDED_DIVISOR = 4,  // of the births in the window: a smaller climb is level
    FAINT_DIVISOR = 10,   // of a rate: what grows at a fifth of its rate still grows
    PAST_SHARE = 4,       // births before the window that outweigh those in it
    STEP_DIVISOR = 8,     // of the last half: the length of a step
};

const char *growth_class_name(enum growth_class class)
{
    static const char *const names[GROWTH_COUNT] = {
        [GROWTH_UNKNOWN] = "unknown", [GROWTH_GROWING] = "growing",
        [GROWTH_STOPPED] = "stopped", [GROWTH_START_UP] = "start_up",
        [GROWTH_BOUNDED] = "bounded", [GROWTH_SAWTOOTH] = "sawtooth",
        [GROWTH_BURSTS] = "bursts",   [GROWTH_LATE] = "late",
        [GROWTH_ONCE] = "once",
    };
    return class < GROWTH_COUNT ? names[class] : "unknown";
}

const char *growth_confidence_name(enum growth_confidence confidence)
{
    static const char *const names[CONFIDENCE_COUNT] = {"none", "low", "medium", "high"};
    return confidence < CONFIDENCE_COUNT ? names[confidence] : "none";
}

// The births in slices first .. end - 1.
struct births {
    size_t moments; // slices with births
    size_t first;
    size_t last;
    size_t longest_gap; // between two consecutive births
    uint64_t bytes;
};

static struct births find_births(const struct growth_history *h, size_t first, size_t end)
{
    struct births births = {.first = end, .last = first};
    for (size_t i = first; i < end; i++) {
        if (h->birth_bytes[i] == 0) {
            continue;
        }
        if (births.moments == 0) {
            births.first = i;
        } else if (i - births.last > births.longest_gap) {
            births.longest_gap = i - births.last;
        }
        births.last = i;
        births.moments++;
        births.bytes += h->birth_bytes[i];
    }
    return births;
}

static enum growth_confidence confidence_of(size_t moments, size_t steps)
{
    if (moments >= 16 && steps >= 64) {
        return CONFIDENCE_HIGH;
    }
    return moments >= 8 && steps >= 32 ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
}

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
static bool is_end(const struct growth_history *h, size_t tail, const struct births *births)
{
    return tail >= 2 * h->step && tail > TAIL_GAPS * births->longest_gap &&
           tail * TAIL_DIVISOR >= h->count - births->first;
}

static int compare_levels(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return order_u64(a, b);
}

static double middle(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare_levels);
    const size_t lower = (count - 1) / 2;
    const size_t upper = count / 2;
    return ((double)values[lower] + (double)values[upper]) / 2;
}

struct level {
    double median;
    double noise; // the median distance from the median
};

static struct level
level_of(const uint64_t *live_bytes, size_t first, size_t end, struct u64_vec *scratch)
{
    const size_t count = end - first;
    memcpy(scratch->items, live_bytes + first, count * sizeof(*live_bytes));
    struct level level = {.median = middle(scratch->items, count)};
    for (size_t i = 0; i < count; i++) {
        const double away = (double)live_bytes[first + i] - level.median;
        scratch->items[i] = (uint64_t)(away < 0 ? -away : away);
    }
    level.noise = middle(scratch->items, count);
    return level;
}

// The window from the first relevant birth to the end.
struct window {
    size_t first;
    struct births births;
    uint64_t floor_bytes; // the lowest level from just before the window on
    uint64_t climb_bytes; // from the floor to the level at the end
};

static struct window window_from(const struct growth_history *h, size_t first)
{
    struct window window = {.first = first, .births = find_births(h, first, h->count)};
    window.floor_bytes = first > 0 ? h->live_bytes[first - 1] : 0;
    for (size_t i = first; i < h->count; i++) {
        const uint64_t level = h->live_bytes[i];
        window.floor_bytes = level < window.floor_bytes ? level : window.floor_bytes;
    }
    window.climb_bytes = h->live_bytes[h->count - 1] - window.floor_bytes;
    return window;
}

// Whether the level was about as high before the window and fell again, after a high time that is
// not much shorter than the window.
static bool has_come_down(const struct growth_history *h, const struct window *w)
{
    const uint64_t high = w->floor_bytes + w->climb_bytes / 2;
    const uint64_t low = w->floor_bytes + w->climb_bytes / 4;
    size_t longest = 0;
    size_t here = 0;
    bool was_high = false;
    for (size_t i = 0; i < w->first; i++) {
        here = h->live_bytes[i] > low ? here + 1 : 0;
        longest = here > longest ? here : longest;
        was_high |= h->live_bytes[i] >= high && h->live_bytes[i] > w->floor_bytes;
    }
    return was_high && h->count - w->first <= 2 * longest + 2 * h->step;
}

// Bursts are low for two thirds of the time, a sawtooth is not.
static enum growth_class class_of_cycles(const struct growth_history *h)
{
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    size_t first = 0;
    while (first + 1 < h->count && h->live_bytes[first] == 0) {
        first++;
    }
    for (size_t i = first; i < h->count; i++) {
        low = h->live_bytes[i] < low ? h->live_bytes[i] : low;
        high = h->live_bytes[i] > high ? h->live_bytes[i] : high;
    }
    size_t high_slices = 0;
    for (size_t i = first; i < h->count; i++) {
        high_slices += h->live_bytes[i] > low + (high - low) / 4;
    }
    return 3 * high_slices < h->count - first ? GROWTH_BURSTS : GROWTH_SAWTOOTH;
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
            (double)find_births(h, quarter_begin(h, w, q), quarter_begin(h, w, q + 1)).bytes;
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
                      const struct window *w,
                      size_t from,
                      double rate,
                      struct growth_verdict *out)
{
    const size_t tail = faint_tail(h, from, rate);
    struct births before = find_births(h, from, h->count - tail);
    before.first = w->first;
    if (before.moments < BIRTHS_MIN || !is_end(h, tail, &before)) {
        return false;
    }
    *out = (struct growth_verdict){
        .class = class_of_past(h, before.last),
        .confidence = confidence_of(tail / h->step, h->count / h->step),
        .latest_birth = before.last,
    };
    return true;
}

// Whether the level rises in accordance with the births.
static bool is_growing(const struct growth_history *h,
                       const struct window *w,
                       const struct quarters *quarters,
                       struct u64_vec *scratch)
{
    const struct level third =
        level_of(h->live_bytes, quarter_begin(h, w, 2), quarters->fourth_begin, scratch);
    const struct level fourth = level_of(h->live_bytes, quarters->fourth_begin, h->count, scratch);
    const double rise = fourth.median - third.median;
    const double noise = third.noise > fourth.noise ? third.noise : fourth.noise;
    const double born = quarters->births[2];
    if (rise + noise < born / 2) {
        return false; // as much was freed as was born
    }
    return quarters->births[1] >= born / 3 || (rise >= 2 * noise && born >= rise / 4);
}

// The part of the last half of a window in which most was born.
struct step {
    size_t first;
    size_t end;
    uint64_t births;
};

// Find it if more was born in it than in the rest of the half, else return an empty one.
static struct step find_step(const struct growth_history *h, const struct window *w)
{
    const size_t first = quarter_begin(h, w, 2);
    const size_t eighth = (h->count - first + STEP_DIVISOR - 1) / STEP_DIVISOR;
    const size_t length = eighth > h->step ? eighth : h->step;
    struct step step = {0};
    uint64_t all = 0;
    uint64_t here = 0; // births in the `length` slices up to i
    for (size_t i = first; i < h->count; i++) {
        all += h->birth_bytes[i];
        here += h->birth_bytes[i];
        here -= i - first >= length ? h->birth_bytes[i - length] : 0;
        if (here > step.births) {
            step.first = i - first >= length ? i - length + 1 : first;
            step.end = i + 1;
            step.births = here;
        }
    }
    return step.births > all - step.births ? step : (struct step){0};
}

static bool is_in_step(const struct step *step, size_t slice)
{
    return slice >= step->first && slice < step->end;
}

// The slope is a weighted sum of the levels, with the weight (time - mean time) / spread. So a byte
// that is live from a slice to the end adds the sum of the weights from there on, `tail`, which is
// the largest for births in the middle. A byte that is freed adds at most the largest such sum, and
// at most the largest weight for each slice in which it is live.
static double squares_of_slope(const struct growth_history *h,
                               const struct step *step,
                               size_t first,
                               double spread)
{
    const double mean_time = ((double)(h->count - first) - 1) / 2;
    double tail = 0;
    double largest_tail = 0;
    double of_births = 0;
    for (size_t i = h->count; i-- > first;) {
        tail += ((double)(i - first) - mean_time) / spread;
        largest_tail = tail > largest_tail ? tail : largest_tail;
        of_births += is_in_step(step, i) ? 0 : (double)h->birth_bytes[i] * tail * tail;
    }
    double unfreed_bytes = (double)find_births(h, 0, first).bytes;
    double freed_bytes = 0; // that are live, summed over the slices
    for (size_t i = first; i < h->count; i++) {
        unfreed_bytes += (double)h->birth_bytes[i];
        freed_bytes += fmax((double)h->live_bytes[i] - unfreed_bytes, 0);
    }
    return of_births + freed_bytes * largest_tail * mean_time / spread;
}

// The slope of the least-squares line through the last half of the window, without what was born in
// a step: one step has no slope.
static void find_slope(const struct growth_history *h,
                       const struct window *w,
                       const struct step *step,
                       struct growth_verdict *verdict)
{
    const size_t first = quarter_begin(h, w, 2);
    const double count = (double)(h->count - first);
    const double mean_time = (count - 1) / 2;
    double in_step_bytes = 0;
    double together = 0; // the mean of the levels makes no difference
    double spread = 0;
    for (size_t i = first; i < h->count; i++) {
        const double time = (double)(i - first) - mean_time;
        in_step_bytes += is_in_step(step, i) ? (double)h->birth_bytes[i] : 0;
        together += time * ((double)h->live_bytes[i] - in_step_bytes);
        spread += time * time;
    }
    verdict->slope_slices = h->count - first;
    if (spread > 0) {
        verdict->slope_bytes = fmax(together / spread, 0);
        verdict->slope_squares = squares_of_slope(h, step, first, spread);
    }
}

// The verdict for a window that does not grow, or is too short: `class`, unless nearly all births
// are older than the window.
static struct growth_verdict judge_rest(const struct growth_history *h,
                                        const struct window *w,
                                        enum growth_class class,
                                        enum growth_confidence confidence)
{
    const struct births before = find_births(h, 0, w->first);
    if (before.bytes / PAST_SHARE > w->births.bytes) {
        return (struct growth_verdict){.class = class_of_past(h, before.last),
                                       .confidence = CONFIDENCE_LOW,
                                       .latest_birth = before.last};
    }
    return (struct growth_verdict){
        .class = class, .confidence = confidence, .latest_birth = w->births.last};
}

static struct growth_verdict
judge_windows(const struct growth_history *h, const struct births *all, struct u64_vec *scratch)
{
    for (size_t first = all->first;;) {
        const struct window w = window_from(h, first);
        const size_t steps = (h->count - first) / h->step;
        const enum growth_confidence confidence = confidence_of(w.births.moments, steps);
        struct growth_verdict verdict;
        if (first > 0 && w.climb_bytes < w.births.bytes / BOUNDED_DIVISOR) {
            const double rate = (double)w.births.bytes / (double)(h->count - first);
            if (has_faded(h, &w, first, rate, &verdict)) {
                return verdict;
            }
            return judge_rest(h, &w, GROWTH_BOUNDED,
                              confidence_of(h->count / h->step, h->count / h->step));
        }
        if (has_come_down(h, &w)) {
            return judge_rest(h, &w, class_of_cycles(h), confidence);
        }
        if (steps < WINDOW_STEPS_MIN) {
            return judge_rest(h, &w, GROWTH_LATE, CONFIDENCE_LOW);
        }
        const struct quarters quarters = quarters_of(h, &w);
        if (quarters.births[3] == 0) {
            return judge_rest(h, &w, GROWTH_STOPPED, CONFIDENCE_LOW);
        }
        if (quarters.births[2] == 0) {
            first = find_births(h, quarters.fourth_begin, h->count).first;
            continue; // less than a quarter remains, so the loop ends
        }
        if (w.births.moments < BIRTHS_MIN) {
            return judge_rest(h, &w, GROWTH_LATE, CONFIDENCE_LOW);
        }
        if (!is_growing(h, &w, &quarters, scratch)) {
            return judge_rest(h, &w, GROWTH_BOUNDED, confidence);
        }
        // A pause before the half that grew says nothing about a pause after it.
        const size_t half = quarter_begin(h, &w, 2);
        const double third = (double)(quarters.fourth_begin - half);
        if (has_faded(h, &w, first, quarters.births[2] / third, &verdict) ||
            has_faded(h, &w, half, quarters.births[2] / third, &verdict)) {
            return verdict;
        }
        const size_t lately = find_births(h, half, quarters.fourth_begin).moments;
        const struct step step = find_step(h, &w);
        const bool is_unsure = lately < BIRTHS_MIN || step.births > 0;
        verdict = (struct growth_verdict){.class = GROWTH_GROWING,
                                          .confidence = is_unsure ? CONFIDENCE_LOW : confidence,
                                          .latest_birth = all->last};
        find_slope(h, &w, &step, &verdict);
        return verdict;
    }
}

enum err growth_judge(const struct growth_history *h, struct growth_verdict *out)
{
    const struct births all = find_births(h, 0, h->count);
    *out = (struct growth_verdict){.class = GROWTH_UNKNOWN, .latest_birth = all.last};
    if (h->allocations == 1) {
        out->class = GROWTH_ONCE;
        out->confidence = CONFIDENCE_HIGH;
        return ERR_OK;
    }
    if (h->count / h->step < STEPS_MIN || all.moments == 0) {
        return ERR_OK;
    }
    const size_t tail = tail_of(h, all.last);
    if (is_end(h, tail, &all)) {
        out->class = class_of_past(h, all.last);
        out->confidence = confidence_of(tail / h->step, h->count / h->step);
        return ERR_OK;
    }
    CLEANUP(u64_vec_release) struct u64_vec scratch = {0};
    TRY(u64_vec_resize(&scratch, h->count));
    *out = judge_windows(h, &all, &scratch);
    return ERR_OK;
}
