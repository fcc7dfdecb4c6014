// SPDX-License-Identifier: MIT
#include "profile/growth/growth_work.h"

#include <math.h>

#include "base/compiler.h"
#include "base/minmax.h"

enum {
    PARTS = 64,          // of the history, which are idle or not
    IDLE_PARTS = 3,      // at least, that follow each other
    IDLE_DIVISOR = 20,   // of the mean rate
    SPIKE_TIMES = 4,     // slices with more than so many times the usual work count as so many
    EXPECTED_MAX = 20,   // allocations of the stacks that may be missing in idle times
    WORKING_DIVISOR = 8, // of the history: the least that must remain
    LEVEL_DIVISOR = 16,  // of the highest level: more of a change is work
};

// The mean work of a slice. A few slices with very much, such as a start, hardly change it.
static double usual_work(const struct growth_history *h, double *limit)
{
    *limit = INFINITY;
    for (double mean = 0;;) {
        double sum = 0;
        size_t busy = 0;
        for (size_t i = 0; i < h->count; i++) {
            sum += fmin((double)h->work[i], *limit);
            busy += h->work[i] > 0;
        }
        const double next = busy > 0 ? sum / (double)busy : 0;
        if (mean != 0 && next >= mean * 0.9) {
            return sum / (double)h->count;
        }
        mean = next;
        *limit = SPIKE_TIMES * mean;
        if (mean == 0) {
            return 0;
        }
    }
}

struct spans {
    bool is_idle[PARTS];
    size_t count; // of the parts
    double rate;  // the mean work of a slice
};

static size_t part_begin(const struct growth_history *h, const struct spans *spans, size_t part)
{
    return h->count * part / spans->count;
}

static void find_quiet(const struct growth_history *h, struct spans *spans)
{
    double limit;
    spans->rate = usual_work(h, &limit);
    uint64_t highest = 0;
    for (size_t i = 0; i < h->count; i++) {
        highest = max_u64(highest, h->live_bytes[i]);
    }
    for (size_t part = 0; part < spans->count; part++) {
        const size_t begin = part_begin(h, spans, part);
        const size_t end = part_begin(h, spans, part + 1);
        double work = 0;
        uint64_t low = UINT64_MAX;
        uint64_t high = 0;
        for (size_t i = begin; i < end; i++) {
            work += fmin((double)h->work[i], limit);
            low = min_u64(low, h->live_bytes[i]);
            high = max_u64(high, h->live_bytes[i]);
        }
        spans->is_idle[part] = work < spans->rate * (double)(end - begin) / IDLE_DIVISOR &&
                               high - low <= highest / LEVEL_DIVISOR;
    }
}

// Only runs of several quiet parts are idle.
static void drop_short_runs(struct spans *spans)
{
    size_t run = 0;
    for (size_t part = 0; part <= spans->count; part++) {
        if (part < spans->count && spans->is_idle[part]) {
            run++;
            continue;
        }
        for (size_t i = part - run; run < IDLE_PARTS && i < part; i++) {
            spans->is_idle[i] = false;
        }
        run = 0;
    }
}

// Whether the stacks would have allocated in the idle times if they had a part in their work.
static bool is_missed(const struct growth_history *h, const struct spans *spans)
{
    double all = 0;
    double idle = 0;
    for (size_t part = 0; part < spans->count; part++) {
        for (size_t i = part_begin(h, spans, part); i < part_begin(h, spans, part + 1); i++) {
            all += (double)h->work[i];
            idle += spans->is_idle[part] ? (double)h->work[i] : 0;
        }
    }
    return all > 0 && (double)h->allocations / all * idle >= EXPECTED_MAX;
}

// Set the flags of the slices in idle times: those of the parts, and of quiet slices beside them.
static void flag_slices(const struct growth_history *h, const struct spans *spans, uint8_t *flags)
{
    const double quiet = spans->rate / IDLE_DIVISOR;
    for (size_t part = 0; part < spans->count; part++) {
        for (size_t i = part_begin(h, spans, part); i < part_begin(h, spans, part + 1); i++) {
            flags[i] = spans->is_idle[part];
        }
    }
    for (size_t i = 1; i < h->count; i++) {
        flags[i] |= flags[i - 1] != 0 && (double)h->work[i] < quiet;
    }
    for (size_t i = h->count - 1; i-- > 0;) {
        flags[i] |= flags[i + 1] != 0 && (double)h->work[i] < quiet;
    }
}

static MUST_USE enum err
take_slices(const struct growth_history *h, const uint8_t *flags, struct working_time *out)
{
    uint64_t births = 0; // of idle times before; they count in the next slice
    for (size_t i = 0; i < h->count; i++) {
        births += h->birth_bytes[i];
        if (flags[i] == 0) {
            TRY(u64_vec_push(&out->live_bytes, h->live_bytes[i]));
            TRY(u64_vec_push(&out->birth_bytes, births));
            TRY(u64_vec_push(&out->slices, i));
            births = 0;
        }
    }
    return ERR_OK;
}

void working_time_release(struct working_time *time)
{
    u64_vec_release(&time->live_bytes);
    u64_vec_release(&time->birth_bytes);
    u64_vec_release(&time->slices);
}

enum err working_time_find(const struct growth_history *h, struct working_time *out)
{
    struct spans spans = {.count = min_u64(PARTS, h->count / h->step)};
    if (h->work == NULL || spans.count == 0) {
        return ERR_OK;
    }
    find_quiet(h, &spans);
    drop_short_runs(&spans);
    if (is_missed(h, &spans)) {
        return ERR_OK;
    }
    CLEANUP(flag_vec_release) struct flag_vec flags = {0};
    TRY(flag_vec_resize(&flags, h->count));
    flag_slices(h, &spans, flags.items);
    TRY(take_slices(h, flags.items, out));
    if (out->slices.len * WORKING_DIVISOR >= h->count) {
        out->idle_slices = h->count - out->slices.len;
    }
    out->history = *h;
    out->history.count = out->slices.len;
    out->history.live_bytes = out->live_bytes.items;
    out->history.birth_bytes = out->birth_bytes.items;
    out->history.work = NULL;
    return ERR_OK;
}
