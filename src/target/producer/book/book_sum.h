// SPDX-License-Identifier: MIT
// book_sum: a thread's part of the shared sum of all live bytes (session/books/shared_sum.h).
//
// Each event changes the part. It is added to the sum when it is large, and with the book. The
// process's share of the sum changes with it, so that the sum loses the process's blocks when it
// ends. A part that is being added says so: one that was left then may be in the sum or not.
// Context: T, as book.h.
#pragma once

#include "target/producer/book/book_cells.h"

ALWAYS_INLINE struct words_share *book_share(const struct lane_producer *p)
{
    return p->words->file->shares + p->lane->process_index;
}

// Add the thread's part to the sum, and to what its process has there. Return the number of the
// latest peak before that.
static NOINLINE uint32_t book_send_part(struct lane_producer *p)
{
    struct sum_part *part = &p->lane->sum_part;
    part->is_sending = 1;
    book_fence();
    words_share_add(book_share(p), part->unsent_bytes);
    const uint32_t number = shared_sum_send(&p->session->sum, part).before_number;
    book_fence();
    part->is_sending = 0;
    return number;
}

// Before a block is freed: note a peak that the free ends.
ALWAYS_INLINE void book_before_free(struct lane_producer *p)
{
    if (UNLIKELY(!shared_sum_before_free(&p->session->sum, &p->lane->sum_part))) {
        (void)book_send_part(p); // its value is in the sum
    }
}

// Do shared_sum_add.
ALWAYS_INLINE uint32_t book_change_sum(struct lane_producer *p,
                                       uint32_t number,
                                       int64_t delta_bytes)
{
    struct sum_part *part = &p->lane->sum_part;
    part->unsent_bytes += delta_bytes;
    return shared_sum_may_keep(part) ? number : book_send_part(p);
}
