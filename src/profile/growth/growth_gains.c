// SPDX-License-Identifier: MIT
#include "profile/growth/growth_gains.h"

#include <math.h>

enum {
    PARTS = 32,        // of a window, in which pauses are looked for
    PAUSE_PARTS = 4,   // at least
    PAUSE_TIMES = 3,   // longer than any other gap
    FAINT_DIVISOR = 4, // of the slices with gains in a part, on average
    STEP_DIVISOR = 8,
};

struct gains gains_find(const uint64_t *gain_bytes, size_t first, size_t end)
{
    struct gains gains = {.first = end, .last = first};
    for (size_t i = first; i < end; i++) {
        if (gain_bytes[i] == 0) {
            continue;
        }
        if (gains.moments == 0) {
            gains.first = i;
        } else if (i - gains.last > gains.longest_gap) {
            gains.longest_gap = i - gains.last;
        }
        gains.last = i;
        gains.moments++;
        gains.bytes += gain_bytes[i];
    }
    return gains;
}

enum growth_confidence gains_confidence(size_t moments, size_t steps)
{
    if (moments >= 16 && steps >= 64) {
        return CONFIDENCE_HIGH;
    }
    return moments >= 8 && steps >= 32 ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
}

// The part with the index `part` of the slices first .. count - 1 begins here.
static size_t part_begin(const struct growth_history *h, size_t first, size_t part)
{
    return first + (h->count - first) * part / PARTS;
}

size_t gains_last_stretch(const struct growth_history *h, const uint64_t *gain_bytes, size_t first)
{
    const size_t moments = gains_find(gain_bytes, first, h->count).moments;
    size_t begin = first;
    size_t longest = 0;
    size_t second = 0;
    size_t here = 0; // parts without gains up to this one
    if (h->count - first < (size_t)PARTS * h->step) {
        return first;
    }
    for (size_t part = 0; part < PARTS; part++) {
        const size_t from = part_begin(h, first, part);
        const size_t to = part_begin(h, first, part + 1);
        if (gains_find(gain_bytes, from, to).moments * PARTS * FAINT_DIVISOR < moments) {
            here++;
            continue;
        }
        if (here >= longest) {
            second = longest;
            longest = here;
            begin = from;
        } else if (here > second) {
            second = here;
        }
        here = 0;
    }
    return longest >= PAUSE_PARTS && longest >= PAUSE_TIMES * second
               ? gains_find(gain_bytes, begin, h->count).first
               : first;
}

struct gains_step
gains_find_step(const struct growth_history *h, const uint64_t *gain_bytes, size_t first)
{
    const size_t eighth = (h->count - first + STEP_DIVISOR - 1) / STEP_DIVISOR;
    const size_t length = eighth > h->step ? eighth : h->step;
    struct gains_step step = {0};
    uint64_t all = 0;
    uint64_t here = 0; // gains in the `length` slices up to i
    for (size_t i = first; i < h->count; i++) {
        all += gain_bytes[i];
        here += gain_bytes[i];
        here -= i - first >= length ? gain_bytes[i - length] : 0;
        if (here > step.bytes) {
            step.first = i - first >= length ? i - length + 1 : first;
            step.end = i + 1;
            step.bytes = here;
        }
    }
    return step.bytes > all - step.bytes ? step : (struct gains_step){0};
}

static bool is_in_step(const struct gains_step *step, size_t slice)
{
    return slice >= step->first && slice < step->end;
}

// The slope is a weighted sum of the levels, with the weight (time - mean time) / spread. So a byte
// that is live from a slice to the end adds the sum of the weights from there on, `tail`, which is
// the largest for births in the middle. A byte that is freed adds at most the largest such sum, and
// at most the largest weight for each slice in which it is live.
static double squares_of_slope(const struct growth_history *h,
                               const struct gains_step *step,
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
    double unfreed_bytes = (double)gains_find(h->birth_bytes, 0, first).bytes;
    double freed_bytes = 0; // that are live, summed over the slices
    for (size_t i = first; i < h->count; i++) {
        unfreed_bytes += (double)h->birth_bytes[i];
        freed_bytes += fmax((double)h->live_bytes[i] - unfreed_bytes, 0);
    }
    return of_births + freed_bytes * largest_tail * mean_time / spread;
}

void gains_find_slope(const struct growth_history *h,
                      const uint64_t *gain_bytes,
                      const struct gains_step *step,
                      size_t first,
                      struct growth_verdict *verdict)
{
    const double count = (double)(h->count - first);
    const double mean_time = (count - 1) / 2;
    double in_step_bytes = 0;
    double together = 0; // the mean of the levels makes no difference
    double spread = 0;
    for (size_t i = first; i < h->count; i++) {
        const double time = (double)(i - first) - mean_time;
        in_step_bytes += is_in_step(step, i) ? (double)gain_bytes[i] : 0;
        together += time * ((double)h->live_bytes[i] - in_step_bytes);
        spread += time * time;
    }
    verdict->slope_slices = h->count - first;
    if (spread > 0) {
        verdict->slope_bytes = fmax(together / spread, 0);
        verdict->slope_squares = squares_of_slope(h, step, first, spread);
    }
}
