// SPDX-License-Identifier: MIT
#include "recorder/memory/memory_snapshots.h"

#include "base/compiler.h"
#include "base/minmax.h"

void memory_moment_release(struct memory_moment *moment)
{
    rec_memory_snapshot_vec_release(&moment->memory_snapshots);
    rss_tables_release(&moment->tables);
    *moment = (struct memory_moment){0};
}

void memory_snapshots_release(struct memory_snapshots *snapshots)
{
    rec_memory_snapshot_vec_release(&snapshots->series);
    memory_moment_release(&snapshots->peak);
    memory_moment_release(&snapshots->last);
    for (size_t i = 0; i < SNAPSHOTS_ASKED_MAX; i++) {
        memory_moment_release(&snapshots->asked[i]);
    }
}

static uint64_t with_growth(uint64_t bytes)
{
    return bytes + bytes / SNAPSHOT_GROWTH_DIVISOR;
}

// Whether a moment with so much takes the place of the highest one because that is doubted.
static bool replaces_doubted(const struct memory_snapshots *snapshots, uint64_t rss_bytes)
{
    return snapshots->doubts_peak && with_growth(rss_bytes) > snapshots->highest_bytes;
}

bool memory_snapshots_are_due(const struct memory_snapshots *snapshots,
                              uint64_t now_ms,
                              uint64_t rss_bytes)
{
    const uint64_t more_ms = SNAPSHOT_REST_MS - SNAPSHOT_INTERVAL_MS;
    const uint64_t peak_bytes = snapshots->peak.rss_bytes;
    const bool is_higher =
        replaces_doubted(snapshots, rss_bytes) || rss_bytes > with_growth(peak_bytes);
    return (is_higher && now_ms >= snapshots->affords_ms) ||
           rss_bytes > peak_bytes + peak_bytes / 2 ||
           now_ms >= snapshots->next_ms + (snapshots->is_resting ? more_ms : 0);
}

static enum err copy_moment(const struct memory_moment *from, struct memory_moment *out)
{
    CLEANUP(memory_moment_release)
    struct memory_moment copy = {.time_ms = from->time_ms, .rss_bytes = from->rss_bytes};
    TRY(rec_memory_snapshot_vec_resize(&copy.memory_snapshots, from->memory_snapshots.len));
    TRY(rss_tables_append(&copy.tables, &from->tables, 0));
    for (size_t i = 0; i < from->memory_snapshots.len; i++) {
        copy.memory_snapshots.items[i] = from->memory_snapshots.items[i];
    }
    memory_moment_release(out);
    *out = TAKE(copy);
    return ERR_OK;
}

// Drop the moment of `time_ms`.
static void drop(struct rec_memory_snapshot_vec *series, uint64_t time_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < series->len; i++) {
        if (series->items[i].time_ms != time_ms) {
            const struct rec_memory_snapshot snapshot = series->items[i];
            series->items[kept++] = snapshot;
        }
    }
    series->len = kept;
}

// Drop every second moment.
static void thin_out(struct rec_memory_snapshot_vec *series)
{
    size_t kept = 0;
    bool stays = false;
    for (size_t i = 0; i < series->len; i++) {
        stays ^= i == 0 || series->items[i].time_ms != series->items[i - 1].time_ms;
        if (stays) {
            const struct rec_memory_snapshot snapshot = series->items[i];
            series->items[kept++] = snapshot;
        }
    }
    series->len = kept;
}

enum err memory_snapshots_add(struct memory_snapshots *snapshots,
                              struct memory_moment *moment,
                              bool was_asked,
                              uint64_t spent_ns)
{
    const uint64_t pause_ms =
        (spent_ns << snapshots->thrift_bits) * SNAPSHOT_COST_DIVISOR / 1000000;
    snapshots->affords_ms = moment->time_ms + pause_ms;
    snapshots->next_ms =
        moment->time_ms + (pause_ms > SNAPSHOT_INTERVAL_MS ? pause_ms : SNAPSHOT_INTERVAL_MS);
    if (snapshots->series.len >= SNAPSHOTS_SERIES_MAX) {
        thin_out(&snapshots->series);
    }
    TRY(rec_memory_snapshot_vec_reserve(&snapshots->series, moment->memory_snapshots.len));
    const bool replaces = replaces_doubted(snapshots, moment->rss_bytes);
    if (replaces) {
        drop(&snapshots->series, snapshots->peak.time_ms);
    }
    if (replaces || moment->rss_bytes > snapshots->peak.rss_bytes) {
        TRY(copy_moment(moment, &snapshots->peak));
        snapshots->doubts_peak = false;
    }
    snapshots->highest_bytes = max_u64(snapshots->highest_bytes, moment->rss_bytes);
    if (was_asked) {
        TRY(copy_moment(moment, &snapshots->asked[snapshots->asked_count++ % SNAPSHOTS_ASKED_MAX]));
    }
    for (size_t i = 0; i < moment->memory_snapshots.len; i++) {
        snapshots->series.items[snapshots->series.len++] = moment->memory_snapshots.items[i];
    }
    memory_moment_release(&snapshots->last);
    snapshots->last = *moment;
    *moment = (struct memory_moment){0};
    return ERR_OK;
}

static void mark_estimated(struct rec_memory_snapshot_vec *snapshots, uint64_t time_ms)
{
    for (size_t i = 0; i < snapshots->len; i++) {
        snapshots->items[i].flags |=
            snapshots->items[i].time_ms == time_ms ? REC_SNAPSHOT_ESTIMATED : 0;
    }
}

void memory_snapshots_doubt(struct memory_snapshots *snapshots, bool is_known)
{
    const uint64_t time_ms = snapshots->last.time_ms;
    snapshots->doubts_peak = snapshots->doubts_peak || snapshots->peak.time_ms == time_ms;
    if (is_known) {
        mark_estimated(&snapshots->series, time_ms);
        mark_estimated(&snapshots->peak.memory_snapshots, time_ms);
        mark_estimated(&snapshots->last.memory_snapshots, time_ms);
        for (size_t i = 0; i < SNAPSHOTS_ASKED_MAX; i++) {
            mark_estimated(&snapshots->asked[i].memory_snapshots, time_ms);
        }
    }
}

struct kept_moment {
    const struct memory_moment *moment;
    uint32_t flag;
};

// Return the earliest of the whole moments after `after_ms`; NULL: none.
static const struct memory_moment *
next_moment(const struct kept_moment *kept, size_t count, uint64_t after_ms, bool is_first)
{
    const struct memory_moment *next = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct memory_moment *moment = kept[i].moment;
        const bool is_later = is_first || moment->time_ms > after_ms;
        if (moment->memory_snapshots.len > 0 && is_later &&
            (next == NULL || moment->time_ms < next->time_ms)) {
            next = moment;
        }
    }
    return next;
}

static enum err push_moment(const struct kept_moment *kept,
                            size_t count,
                            const struct memory_moment *moment,
                            struct rec_memory_snapshot_vec *snapshots,
                            struct rss_tables *tables)
{
    uint32_t flags = 0;
    for (size_t i = 0; i < count; i++) {
        const struct memory_moment *other = kept[i].moment;
        flags |=
            other->memory_snapshots.len > 0 && other->time_ms == moment->time_ms ? kept[i].flag : 0;
    }
    const uint32_t first = (uint32_t)snapshots->len;
    for (size_t i = 0; i < moment->memory_snapshots.len; i++) {
        struct rec_memory_snapshot snapshot = moment->memory_snapshots.items[i];
        snapshot.flags |= flags;
        TRY(rec_memory_snapshot_vec_push(snapshots, snapshot));
    }
    return rss_tables_append(tables, &moment->tables, first);
}

enum err memory_snapshots_collect(const struct memory_snapshots *snapshots,
                                  struct rec_memory_snapshot_vec *out_snapshots,
                                  struct rss_tables *out_tables)
{
    struct kept_moment kept[2 + SNAPSHOTS_ASKED_MAX] = {{&snapshots->peak, REC_SNAPSHOT_PEAK},
                                                        {&snapshots->last, REC_SNAPSHOT_LAST}};
    for (size_t i = 0; i < SNAPSHOTS_ASKED_MAX; i++) {
        kept[2 + i] = (struct kept_moment){&snapshots->asked[i], REC_SNAPSHOT_ASKED};
    }
    const struct memory_moment *next = next_moment(kept, ARRAY_LEN(kept), 0, true);
    size_t at = 0;
    while (next != NULL || at < snapshots->series.len) {
        const struct rec_memory_snapshot *snapshot = snapshots->series.items + at;
        if (next == NULL || (at < snapshots->series.len && snapshot->time_ms < next->time_ms)) {
            TRY(rec_memory_snapshot_vec_push(out_snapshots, *snapshot));
            at++;
            continue;
        }
        TRY(push_moment(kept, ARRAY_LEN(kept), next, out_snapshots, out_tables));
        while (at < snapshots->series.len && snapshots->series.items[at].time_ms == next->time_ms) {
            at++;
        }
        next = next_moment(kept, ARRAY_LEN(kept), next->time_ms, false);
    }
    return ERR_OK;
}
