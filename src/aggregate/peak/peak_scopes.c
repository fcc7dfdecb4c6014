// SPDX-License-Identifier: MIT
#include "aggregate/peak/peak_scopes.h"

#include <string.h>

#include "base/compiler.h"

void peak_scopes_release(struct peak_scopes *scopes)
{
    peak_thread_vec_release(&scopes->threads);
    map_u64_release(&scopes->index);
}

static struct peak_thread *find_thread(struct peak_scopes *scopes, uint32_t thread)
{
    const uint32_t *place = map_u64_find(&scopes->index, thread);
    return place != NULL ? scopes->threads.items + *place : NULL;
}

static struct peak_thread *
find_open(struct peak_scopes *scopes, uint32_t thread, uint32_t lane, uint32_t scope)
{
    struct peak_thread *t = find_thread(scopes, thread);
    const bool is_open =
        t != NULL && t->lane == lane && scope < LANE_SCOPES_MAX && (t->open >> scope & 1) != 0;
    return is_open ? t : NULL;
}

static MUST_USE enum err add_thread(struct peak_scopes *scopes, uint32_t thread, uint32_t lane)
{
    TRY(peak_thread_vec_reserve(&scopes->threads, 1));
    TRY(map_u64_put(&scopes->index, thread, (uint32_t)scopes->threads.len));
    return peak_thread_vec_push(&scopes->threads,
                                (struct peak_thread){.thread = thread, .lane = lane});
}

// Count the frees by other threads before the tick of now_ms.
static void count_due_frees(struct peak_thread *t, uint64_t now_ms)
{
    uint32_t due = 0;
    for (; due < t->later_count && t->later[due].ms < now_ms; due++) {
        t->live_bytes -= (int64_t)t->later[due].bytes;
    }
    t->later_count -= due;
    memmove(t->later, t->later + due, t->later_count * sizeof(t->later[0]));
}

// Note frees by other threads. They may count too late, never too early.
static void put_off(struct peak_thread *t, uint64_t tick_ms, uint64_t bytes)
{
    struct peak_later *last = t->later + t->later_count - 1; // if there is one
    if (t->later_count > 0 && last->ms >= tick_ms) {
        last->bytes += bytes;
        return;
    }
    if (t->later_count == PEAK_LATER_MAX) {
        t->later[1].bytes += t->later[0].bytes;
        t->later_count--;
        memmove(t->later, t->later + 1, t->later_count * sizeof(t->later[0]));
    }
    t->later[t->later_count++] = (struct peak_later){.ms = tick_ms, .bytes = bytes};
}

enum err
peak_scopes_begin(struct peak_scopes *scopes, uint32_t thread, uint32_t lane, uint32_t scope)
{
    if (scope >= LANE_SCOPES_MAX) {
        return ERR_CORRUPT;
    }
    if (find_thread(scopes, thread) == NULL) {
        TRY(add_thread(scopes, thread, lane));
    }
    struct peak_thread *t = find_thread(scopes, thread);
    if (t->lane == lane) {
        // the thread waits for the recorder, so all read frees happened before
        count_due_frees(t, UINT64_MAX);
        t->open |= 1u << scope;
        t->begin_bytes[scope] = t->live_bytes;
        t->most_bytes[scope] = t->live_bytes;
    }
    return ERR_OK;
}

uint64_t
peak_scopes_most(struct peak_scopes *scopes, uint32_t thread, uint32_t lane, uint32_t scope)
{
    const struct peak_thread *t = find_open(scopes, thread, lane, scope);
    return t != NULL ? (uint64_t)(t->most_bytes[scope] - t->begin_bytes[scope]) : PEAK_UNKNOWN;
}

// Remove a thread; the last one takes its position.
static void drop_thread(struct peak_scopes *scopes, struct peak_thread *t)
{
    const struct peak_thread *last = scopes->threads.items + scopes->threads.len - 1;
    uint32_t *place = map_u64_find(&scopes->index, last->thread);
    *place = (uint32_t)(t - scopes->threads.items);
    (void)map_u64_remove(&scopes->index, t->thread); // it is there
    *t = *last;
    scopes->threads.len--;
}

void peak_scopes_end(struct peak_scopes *scopes, uint32_t thread, uint32_t lane, uint32_t scope)
{
    struct peak_thread *t = find_open(scopes, thread, lane, scope);
    if (t == NULL) {
        return;
    }
    t->open &= ~(1u << scope);
    if (t->open == 0) {
        drop_thread(scopes, t);
    }
}

void peak_scopes_end_thread(struct peak_scopes *scopes, uint32_t thread, uint32_t lane)
{
    struct peak_thread *t = find_thread(scopes, thread);
    if (t != NULL && t->lane == lane) {
        drop_thread(scopes, t);
    }
}

void peak_scopes_allocated(struct peak_scopes *scopes,
                           uint32_t thread,
                           uint64_t tick_ms,
                           uint64_t bytes)
{
    struct peak_thread *t = find_thread(scopes, thread);
    if (t == NULL) {
        return;
    }
    count_due_frees(t, tick_ms);
    t->live_bytes += (int64_t)bytes;
    for (uint32_t open = t->open; open != 0; open &= open - 1) {
        int64_t *most = t->most_bytes + __builtin_ctz(open);
        *most = t->live_bytes > *most ? t->live_bytes : *most;
    }
}

void peak_scopes_freed(
    struct peak_scopes *scopes, uint32_t owner, uint32_t by, uint64_t tick_ms, uint64_t bytes)
{
    struct peak_thread *t = find_thread(scopes, owner);
    if (t == NULL) {
        return;
    }
    if (by == owner) {
        t->live_bytes -= (int64_t)bytes;
        return;
    }
    put_off(t, tick_ms, bytes);
}
