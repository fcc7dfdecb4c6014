// SPDX-License-Identifier: MIT
#include "aggregate/live_blocks/pending_frees.h"

#include <string.h>

#define WAITING_NONE UINT32_MAX // not a number of a free

enum {
    WAITING_PER_ADDRESS_MAX = 16, // a program frees a block once; more is hostile
};

void pending_frees_release(struct pending_frees *w)
{
    waiting_free_vec_release(&w->queue);
    map_u64_release(&w->by_address);
    *w = (struct pending_frees){0};
}

static struct waiting_free *at_number(struct pending_frees *w, uint32_t number)
{
    return w->queue.items + w->first + (uint32_t)(number - w->first_number);
}

// Unlink `number`, whose predecessor for the same address is `previous` (or WAITING_NONE).
static void unlink_one(struct pending_frees *w, uint32_t number, uint32_t previous)
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

// Remove the oldest free from the queue. Return whether it still waited.
static bool drop_first(struct pending_frees *w)
{
    bool waited = !w->queue.items[w->first].is_taken;
    if (waited) {
        // the oldest of all is the oldest of its address
        unlink_one(w, w->first_number, WAITING_NONE);
    }
    w->first++;
    w->first_number++;
    if (w->first == w->queue.len) {
        w->first = 0;
        w->queue.len = 0;
    }
    return waited;
}

static void close_gap(struct pending_frees *w)
{
    if (w->first > w->queue.len / 2 && w->first > 1024) {
        w->queue.len -= w->first;
        memmove(w->queue.items, w->queue.items + w->first, w->queue.len * sizeof(*w->queue.items));
        w->first = 0;
    }
}

enum err pending_frees_add(
    struct pending_frees *w, uint64_t address, uint64_t tick, uint64_t stamp, uint64_t *expired)
{
    while (w->queue.len - w->first >= WAITING_MAX) {
        *expired += drop_first(w);
    }
    close_gap(w);
    uint32_t number = w->first_number + (uint32_t)(w->queue.len - w->first);
    if (number == WAITING_NONE) { // skip the reserved number
        *expired += pending_frees_expire(w, UINT64_MAX);
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
    w->queue.items[w->queue.len++] = (struct waiting_free){
        .address = address, .tick = tick, .stamp = stamp, .next = WAITING_NONE};
    w->waiting_count++;
    return ERR_OK;
}

bool pending_frees_take(struct pending_frees *w, uint64_t address, uint64_t stamp)
{
    const uint32_t *oldest = map_u64_find(&w->by_address, address);
    uint32_t before_first = WAITING_NONE;
    uint32_t first = WAITING_NONE;
    uint64_t first_stamp = UINT64_MAX;
    uint32_t previous = WAITING_NONE;
    for (uint32_t number = oldest != NULL ? *oldest : WAITING_NONE; number != WAITING_NONE;) {
        const struct waiting_free *candidate = at_number(w, number);
        if (candidate->stamp > stamp && candidate->stamp < first_stamp) {
            before_first = previous;
            first = number;
            first_stamp = candidate->stamp;
        }
        previous = number;
        number = candidate->next;
    }
    if (first != WAITING_NONE) {
        unlink_one(w, first, before_first);
    }
    return first != WAITING_NONE;
}

uint64_t pending_frees_expire(struct pending_frees *w, uint64_t now_tick)
{
    uint64_t expired = 0;
    while (w->first < w->queue.len &&
           (now_tick == UINT64_MAX || w->queue.items[w->first].is_taken ||
            w->queue.items[w->first].tick + WAITING_TICKS < now_tick)) {
        expired += drop_first(w);
    }
    return expired;
}
