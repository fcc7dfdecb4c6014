// SPDX-License-Identifier: MIT
#include "target/producer/entry/lane_turn.h"

#include <time.h>

#include "base/sys.h"
#include "target/producer/book/book.h"
#include "target/producer/waiting/recorder_liveness.h"

enum {
    OWNER_NAP_NS = 200000, // the recorder owns a book for some microseconds
};

// Wait for the recorder, which is busy here or dead. False: dead.
static bool await_owner(struct lane_producer *p)
{
    struct book_head *book = &p->lane->book;
    const struct timespec nap = {.tv_nsec = OWNER_NAP_NS};
    struct patience patience;
    patience_init(&patience, p->session, p->lane);
    uint32_t owner = BOOK_OF_NEITHER;
    while (!atomic_compare_exchange_strong_explicit(&book->owner, &owner, BOOK_OF_THREAD,
                                                    memory_order_acquire, memory_order_relaxed)) {
        if (patience_is_over(&patience, p->session, p->lane)) {
            session_abandon(p->session);
            return false;
        }
        (void)sys_futex_wait(&book->owner, owner, &nap); // there is no wake-up: a nap
        owner = BOOK_OF_NEITHER;
    }
    return true;
}

// Take the lock, until give_back. False: the recorder is dead.
static bool take(struct lane_producer *p)
{
    uint32_t owner = BOOK_OF_NEITHER;
    // Acquire: pairs with the recorder's release, after which the book is empty. It may be ours
    // already, if an earlier hook was left half way.
    return LIKELY(atomic_compare_exchange_strong_explicit(&p->lane->book.owner, &owner,
                                                          BOOK_OF_THREAD, memory_order_acquire,
                                                          memory_order_relaxed)) ||
           owner == BOOK_OF_THREAD || await_owner(p);
}

static void give_back(struct lane_producer *p)
{
    // Release: pairs with the recorder's acquire.
    atomic_store_explicit(&p->lane->book.owner, BOOK_OF_NEITHER, memory_order_release);
}

// Begin a tick: the TICK was written.
static void begin_tick(struct lane_producer *p, uint64_t now_ms)
{
    if (book_is_kept(p)) {
        book_begin_tick(p, now_ms);
    }
    // Release: a recorder that sees the new time sees all records published before.
    atomic_store_explicit(&p->lane->book.tick_ms, now_ms, memory_order_release);
}

static bool send_book(struct lane_producer *p)
{
    return !book_is_kept(p) || book_send_all(p);
}

bool lane_turn(struct lane_producer *p, uint64_t clock)
{
    if (session_is_over(p->session)) {
        return false;
    }
    const bool is_later = clock != p->clock;
    const uint64_t now_ms = session_time_of(p->session, clock);
    if (!take(p)) {
        return false;
    }
    const bool is_sent = (!book_is_due(p, now_ms) || send_book(p)) &&
                         (!is_later || lane_producer_send_tick(p, clock, now_ms));
    if (is_sent) {
        lane_producer_publish(p);
    }
    if (is_sent && is_later) {
        begin_tick(p, now_ms);
    }
    give_back(p);
    return is_sent;
}

bool lane_flush(struct lane_producer *p)
{
    // The last pass takes what the thread has counted itself.
    if (session_is_over(p->session) || !take(p)) {
        return false;
    }
    const bool is_sent = send_book(p);
    give_back(p);
    return is_sent;
}

bool lane_recover(struct lane_producer *p)
{
    p->last_allocated = 0;
    if (session_is_over(p->session) || !take(p)) {
        return false;
    }
    if (book_is_kept(p)) {
        book_recover(p);
    }
    const bool is_sent = send_book(p);
    give_back(p);
    return is_sent;
}
