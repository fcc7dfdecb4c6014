// SPDX-License-Identifier: MIT
// peak_share: what a row held at the peak, from events in no order.
//
// Each event is before or after each peak by what its thread had seen: the number of the latest
// peak (shared_sum.h). A share says: so many bytes before peak `number`, so many since. Shares of
// one row are merged in any order and grouping, with the same result: they are sums over
// the events before, and since, the latest peak that any of them saw.
//
//   peak_share_add     an event                        counters of threads
//   peak_share_merge   a share of the same row         the recorder's rows
//   peak_share_at      bytes at the latest of all peaks. A row that has not seen it did not change
//                      since, so its whole sum counts
//
// The sum of all rows is the sum at the peak, and what threads had not added then.
// Context: T and H; pure. A zeroed share is empty.
#pragma once

#include <stdint.h>

struct peak_share {
    int64_t before_bytes; // of events before peak `number`
    int64_t since_bytes;
    uint32_t number;
};

static inline void peak_share_merge(struct peak_share *share, const struct peak_share *other)
{
    if (other->number > share->number) {
        share->before_bytes += share->since_bytes + other->before_bytes;
        share->since_bytes = other->since_bytes;
        share->number = other->number;
    } else if (other->number == share->number) {
        share->before_bytes += other->before_bytes;
        share->since_bytes += other->since_bytes;
    } else {
        share->before_bytes += other->before_bytes + other->since_bytes;
    }
}

// Add an event of a thread that had seen peak `number`.
static inline void peak_share_add(struct peak_share *share, uint32_t number, int64_t delta_bytes)
{
    peak_share_merge(share, &(struct peak_share){.since_bytes = delta_bytes, .number = number});
}

static inline int64_t peak_share_at(const struct peak_share *share, uint32_t latest_number)
{
    return share->before_bytes + (share->number < latest_number ? share->since_bytes : 0);
}
