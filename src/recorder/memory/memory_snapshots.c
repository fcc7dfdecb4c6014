// SPDX-License-Identifier: MIT
// memory_snapshots: see the header.
#include "recorder/memory/memory_snapshots.h"

#include "base/compiler.h"

void look_moment_release(struct look_moment *moment)
{
    rec_memory_snapshot_vec_release(&moment->looks);
    rec_part_vec_release(&moment->parts);
    *moment = (struct look_moment){0};
}

void memory_snapshots_release(struct memory_snapshots *looks)
{
    rec_memory_snapshot_vec_release(&looks->series);
    look_moment_release(&looks->peak);
    look_moment_release(&looks->last);
    for (size_t i = 0; i < LOOKS_ASKED_MAX; i++) {
        look_moment_release(&looks->asked[i]);
    }
}

bool memory_snapshots_are_due(const struct memory_snapshots *looks,
                              uint64_t now_ms,
                              uint64_t rss_bytes)
{
    const uint64_t peak_bytes = looks->peak.rss_bytes;
    const bool has_grown = rss_bytes > peak_bytes + peak_bytes / LOOK_GROWTH_DIVISOR;
    return (has_grown && now_ms >= looks->affords_ms) || rss_bytes > peak_bytes + peak_bytes / 2 ||
           now_ms >= looks->next_ms;
}

static enum err copy_moment(const struct look_moment *from, struct look_moment *out)
{
    CLEANUP(look_moment_release)
    struct look_moment copy = {.time_ms = from->time_ms, .rss_bytes = from->rss_bytes};
    TRY(rec_memory_snapshot_vec_resize(&copy.looks, from->looks.len));
    TRY(rec_part_vec_resize(&copy.parts, from->parts.len));
    for (size_t i = 0; i < from->looks.len; i++) {
        copy.looks.items[i] = from->looks.items[i];
    }
    for (size_t i = 0; i < from->parts.len; i++) {
        copy.parts.items[i] = from->parts.items[i];
    }
    look_moment_release(out);
    *out = copy;
    copy = (struct look_moment){0};
    return ERR_OK;
}

// Drop every second moment.
static void thin_out(struct rec_memory_snapshot_vec *series)
{
    size_t kept = 0;
    bool stays = false;
    for (size_t i = 0; i < series->len; i++) {
        stays ^= i == 0 || series->items[i].time_ms != series->items[i - 1].time_ms;
        if (stays) {
            const struct rec_memory_snapshot look = series->items[i];
            series->items[kept++] = look;
        }
    }
    series->len = kept;
}

enum err memory_snapshots_add(struct memory_snapshots *looks,
                              struct look_moment *moment,
                              bool was_asked,
                              uint64_t spent_ns)
{
    const uint64_t pause_ms = spent_ns * LOOK_COST_DIVISOR / 1000000;
    looks->affords_ms = moment->time_ms + pause_ms;
    looks->next_ms = moment->time_ms + (pause_ms > LOOK_INTERVAL_MS ? pause_ms : LOOK_INTERVAL_MS);
    if (looks->series.len >= LOOKS_SERIES_MAX) {
        thin_out(&looks->series);
    }
    TRY(rec_memory_snapshot_vec_reserve(&looks->series, moment->looks.len));
    if (moment->rss_bytes > looks->peak.rss_bytes) {
        TRY(copy_moment(moment, &looks->peak));
    }
    if (was_asked) {
        TRY(copy_moment(moment, &looks->asked[looks->asked_count++ % LOOKS_ASKED_MAX]));
    }
    for (size_t i = 0; i < moment->looks.len; i++) {
        looks->series.items[looks->series.len++] = moment->looks.items[i];
    }
    look_moment_release(&looks->last);
    looks->last = *moment;
    *moment = (struct look_moment){0};
    return ERR_OK;
}

struct kept_moment {
    const struct look_moment *moment;
    uint32_t flag;
};

// Return the earliest of the whole moments after `after_ms`; NULL: none.
static const struct look_moment *
next_moment(const struct kept_moment *kept, size_t count, uint64_t after_ms, bool is_first)
{
    const struct look_moment *next = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct look_moment *moment = kept[i].moment;
        const bool is_later = is_first || moment->time_ms > after_ms;
        if (moment->looks.len > 0 && is_later &&
            (next == NULL || moment->time_ms < next->time_ms)) {
            next = moment;
        }
    }
    return next;
}

static enum err push_moment(const struct kept_moment *kept,
                            size_t count,
                            const struct look_moment *moment,
                            struct rec_memory_snapshot_vec *looks,
                            struct rec_part_vec *parts)
{
    uint32_t flags = 0;
    for (size_t i = 0; i < count; i++) {
        const struct look_moment *other = kept[i].moment;
        flags |= other->looks.len > 0 && other->time_ms == moment->time_ms ? kept[i].flag : 0;
    }
    const uint32_t first = (uint32_t)looks->len;
    for (size_t i = 0; i < moment->looks.len; i++) {
        struct rec_memory_snapshot look = moment->looks.items[i];
        look.flags |= flags;
        TRY(rec_memory_snapshot_vec_push(looks, look));
    }
    for (size_t i = 0; i < moment->parts.len; i++) {
        struct rec_part part = moment->parts.items[i];
        part.look += first;
        TRY(rec_part_vec_push(parts, part));
    }
    return ERR_OK;
}

enum err memory_snapshots_collect(const struct memory_snapshots *looks,
                                  struct rec_memory_snapshot_vec *out_looks,
                                  struct rec_part_vec *out_parts)
{
    struct kept_moment kept[2 + LOOKS_ASKED_MAX] = {{&looks->peak, REC_LOOK_PEAK},
                                                    {&looks->last, REC_LOOK_LAST}};
    for (size_t i = 0; i < LOOKS_ASKED_MAX; i++) {
        kept[2 + i] = (struct kept_moment){&looks->asked[i], REC_LOOK_ASKED};
    }
    const struct look_moment *next = next_moment(kept, ARRAY_LEN(kept), 0, true);
    size_t at = 0;
    while (next != NULL || at < looks->series.len) {
        const struct rec_memory_snapshot *look = looks->series.items + at;
        if (next == NULL || (at < looks->series.len && look->time_ms < next->time_ms)) {
            TRY(rec_memory_snapshot_vec_push(out_looks, *look));
            at++;
            continue;
        }
        TRY(push_moment(kept, ARRAY_LEN(kept), next, out_looks, out_parts));
        while (at < looks->series.len && looks->series.items[at].time_ms == next->time_ms) {
            at++;
        }
        next = next_moment(kept, ARRAY_LEN(kept), next->time_ms, false);
    }
    return ERR_OK;
}
