// SPDX-License-Identifier: MIT
#include "aggregate/live_blocks/pending_frees.h"

#include <string.h>

#define PENDING_NONE UINT32_MAX // not a number of a free

enum {
    PENDING_PER_ADDRESS_MAX = 16, // a program frees a block once; more is hostile
};

void pending_frees_release(struct pending_frees *w)
{
    pending_free_vec_release(&w->queue);
    map_u64_release(&w->by_address);
    *w = (struct pending_frees){0};
}

static struct pending_free *at_number(struct pending_frees *w, uint32_t number)
{
    return w->queue.items + w->first + (uint32_t)(number - w->first_number);
}

// Unlink `number`, whose predecessor for the same address is `previous` (or PENDING_NONE).
static void unlink_one(struct pending_frees *w, uint32_t number, uint32_t previous)
{
    struct pending_free *pending = at_number(w, number);
    pending->is_taken = true;
    w->count--;
    if (previous != PENDING_NONE) {
        at_number(w, previous)->next = pending->next;
    } else if (pending->next == PENDING_NONE) {
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
        unlink_one(w, w->first_number, PENDING_NONE);
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
    while (w->queue.len - w->first >= PENDING_MAX) {
        *expired += drop_first(w);
    }
    close_gap(w);
    uint32_t number = w->first_number + (uint32_t)(w->queue.len - w->first);
    if (number == PENDING_NONE) { // skip the reserved number
        *expired += pending_frees_expire(w, UINT64_MAX);
        w->first_number = number = 0;
    }
    TRY(pending_free_vec_reserve(&w->queue, 1));
    uint32_t *oldest = map_u64_find(&w->by_address, address);
    if (oldest != NULL) {
        struct pending_free *last = at_number(w, *oldest);
        for (int length = 1; last->next != PENDING_NONE; length++) {
            if (length == PENDING_PER_ADDRESS_MAX) {
                *expired += 1;
                return ERR_OK;
            }
            last = at_number(w, last->next);
        }
        last->next = number;
    } else {
        TRY(map_u64_put(&w->by_address, address, number));
    }
    w->queue.items[w->queue.len++] = (struct pending_free){
        .address = address, .tick = tick, .stamp = stamp, .next = PENDING_NONE};
    w->count++;
    return ERR_OK;
}

bool pending_frees_take(struct pending_frees *w, uint64_t address, uint64_t stamp)
{
    const uint32_t *oldest = map_u64_find(&w->by_address, address);
    uint32_t before_first = PENDING_NONE;
    uint32_t first = PENDING_NONE;
    uint64_t first_stamp = UINT64_MAX;
    uint32_t previous = PENDING_NONE;
    for (uint32_t number = oldest != NULL ? *oldest : PENDING_NONE; number != PENDING_NONE;) {
        const struct pending_free *candidate = at_number(w, number);
        if (candidate->stamp > stamp && candidate->stamp < first_stamp) {
            before_first = previous;
            first = number;
            first_stamp = candidate->stamp;
        }
        previous = number;
        number = candidate->next;
    }
    if (first != PENDING_NONE) {
        unlink_one(w, first, before_first);
    }
    return first != PENDING_NONE;
}

uint64_t pending_frees_expire(struct pending_frees *w, uint64_t now_tick)
{
    uint64_t expired = 0;
    while (w->first < w->queue.len &&
           (now_tick == UINT64_MAX || w->queue.items[w->first].is_taken ||
            w->queue.items[w->first].tick + PENDING_TICKS < now_tick)) {
        expired += drop_first(w);
    }
    return expired;
}
