// SPDX-License-Identifier: MIT
// waiting_frees: see the header.
#include "recorder/waiting_frees.h"

#include <string.h>

#define WAITING_NONE UINT32_MAX // no number

enum {
    WAITING_PER_ADDRESS_MAX = 16, // a program frees a block once; more is hostile
};

void waiting_frees_release(struct waiting_frees *w)
{
    waiting_free_vec_release(&w->queue);
    map_u64_release(&w->by_address);
    *w = (struct waiting_frees){0};
}

static struct waiting_free *at_number(struct waiting_frees *w, uint32_t number)
{
    return w->queue.items + w->first + (uint32_t)(number - w->first_number);
}

// Unlinks `number`, whose predecessor for the same address is `previous` (or WAITING_NONE).
static void unlink_one(struct waiting_frees *w, uint32_t number, uint32_t previous)
{
    struct waiting_free *pending = at_number(w, number);
    pending->is_taken = true;
    w->waiting_count--;
    if (previous != WAITING_NONE) {
        at_number(w, previous)->next = pending->next;
    } else if (pending->next == WAITING_NONE) {
        (void)map_u64_remove(&w->by_address, pending->address); // it is there: number was its value
    } else {
        *map_u64_find(&w->by_address, pending->address) = pending->next;
    }
}

// The oldest leaves the queue. Returns whether it still waited.
static bool drop_first(struct waiting_frees *w)
{
    bool waited = !w->queue.items[w->first].is_taken;
    if (waited) {
        unlink_one(w, w->first_number, WAITING_NONE); // the oldest of all is that of its address
    }
    w->first++;
    w->first_number++;
    w->shown = w->shown > w->first ? w->shown : w->first;
    w->shown_again = w->shown_again > w->first ? w->shown_again : w->first;
    if (w->first == w->queue.len) {
        w->first = 0;
        w->shown = 0;
        w->shown_again = 0;
        w->queue.len = 0;
    }
    return waited;
}

static void close_gap(struct waiting_frees *w)
{
    if (w->first > w->queue.len / 2 && w->first > 1024) {
        w->queue.len -= w->first;
        memmove(w->queue.items, w->queue.items + w->first, w->queue.len * sizeof(*w->queue.items));
        w->shown -= w->first;
        w->shown_again -= w->first;
        w->first = 0;
    }
}

enum err waiting_frees_add(
    struct waiting_frees *w, uint64_t address, uint64_t tick, uint32_t lane, uint64_t *expired)
{
    while (w->queue.len - w->first >= WAITING_MAX) {
        *expired += drop_first(w);
    }
    close_gap(w);
    uint32_t number = w->first_number + (uint32_t)(w->queue.len - w->first);
    if (number == WAITING_NONE) { // the one number that means none
        *expired += waiting_frees_expire(w, UINT64_MAX);
        w->first_number = number = 0;
    }
    TRY(waiting_free_vec_reserve(&w->queue, 1));
    uint32_t *oldest = map_u64_find(&w->by_address, address);
    if (oldest != NULL) {
        struct waiting_free *last = at_number(w, *oldest);
        for (int length = 1; last->next != WAITING_NONE; length++) {
            if (length == WAITING_PER_ADDRESS_MAX) {
                *expired += 1;
                return ERR_OK;
            }
            last = at_number(w, last->next);
        }
        last->next = number;
    } else {
        TRY(map_u64_put(&w->by_address, address, number));
    }
    w->queue.items[w->queue.len++] =
        (struct waiting_free){.address = address, .tick = tick, .lane = lane, .next = WAITING_NONE};
    w->waiting_count++;
    return ERR_OK;
}

bool waiting_frees_take(struct waiting_frees *w, uint64_t address, uint64_t tick, uint32_t lane)
{
    if (w->waiting_count == 0) {
        return false;
    }
    const uint32_t *oldest = map_u64_find(&w->by_address, address);
    uint32_t previous = WAITING_NONE;
    for (uint32_t number = oldest != NULL ? *oldest : WAITING_NONE; number != WAITING_NONE;) {
        const struct waiting_free *candidate = at_number(w, number);
        if (candidate->lane != lane && candidate->tick >= tick) {
            unlink_one(w, number, previous);
            return true;
        }
        previous = number;
        number = candidate->next;
    }
    return false;
}

// The first one from *at on that still waits and is older than `before_tick`; moves *at behind it.
static const struct waiting_free *
show_from(struct waiting_frees *w, size_t *at, uint64_t before_tick)
{
    while (*at < w->queue.len && w->queue.items[*at].tick < before_tick) {
        const struct waiting_free *next = w->queue.items + (*at)++;
        if (!next->is_taken) {
            return next;
        }
    }
    return NULL;
}

const struct waiting_free *waiting_frees_next(struct waiting_frees *w, uint64_t now_tick)
{
    const struct waiting_free *next = show_from(w, &w->shown, now_tick);
    if (next != NULL) {
        return next;
    }
    const bool is_end = now_tick == UINT64_MAX;
    const uint64_t expiring = now_tick > WAITING_TICKS ? now_tick - WAITING_TICKS : 0;
    return show_from(w, &w->shown_again, is_end ? now_tick : expiring);
}

void waiting_frees_settle(struct waiting_frees *w, const struct waiting_free *pending)
{
    const uint32_t wanted = w->first_number + (uint32_t)(pending - (w->queue.items + w->first));
    uint32_t previous = WAITING_NONE;
    uint32_t number = *map_u64_find(&w->by_address, pending->address); // it waits, so it is there
    while (number != wanted) {
        previous = number;
        number = at_number(w, number)->next;
    }
    unlink_one(w, number, previous);
}

uint64_t waiting_frees_expire(struct waiting_frees *w, uint64_t now_tick)
{
    uint64_t expired = 0;
    while (w->first < w->queue.len &&
           (now_tick == UINT64_MAX || w->queue.items[w->first].is_taken ||
            w->queue.items[w->first].tick + WAITING_TICKS < now_tick)) {
        expired += drop_first(w);
    }
    return expired;
}
