// SPDX-License-Identifier: MIT
#include "recorder/session/book_reader.h"

#include <string.h>
#include <sys/mman.h>

bool book_reader_has_counted(const struct lane_header *lane)
{
    return book_reader_is_kept(lane) && *(const volatile uint32_t *)&lane->book.has_counted != 0;
}

uint64_t book_reader_unsent_since(struct lane_header *lane)
{
    // Acquire: pairs with the thread's release; records sent before are in the ring, and any later
    // reader of the ring sees them.
    const uint64_t sent_ms = atomic_load_explicit(&lane->book.sent_ms, memory_order_acquire);
    return book_reader_has_counted(lane) ? sent_ms : UINT64_MAX;
}

static bool is_idle(struct lane_header *lane, uint64_t stable_ms)
{
    // Acquire: pairs with the thread's release of its guard; its hook's stores are complete.
    return atomic_load_explicit(&lane->book.tick_ms, memory_order_acquire) < stable_ms &&
           atomic_load_explicit(lane_guard(lane), memory_order_acquire) == 0;
}

void book_reader_unlock(struct lane_header *lane)
{
    // Release: pairs with the thread's acquire; it sees what was taken.
    atomic_store_explicit(&lane->book.owner, BOOK_OF_NEITHER, memory_order_release);
}

bool book_reader_lock(struct lane_header *lane, uint64_t stable_ms)
{
    uint32_t owner = BOOK_OF_NEITHER;
    if (!is_idle(lane, stable_ms) ||
        !atomic_compare_exchange_strong_explicit(&lane->book.owner, &owner, BOOK_OF_RECORDER,
                                                 memory_order_acquire, memory_order_relaxed)) {
        return false;
    }
    const bool is_still_idle = is_idle(lane, stable_ms);
    if (!is_still_idle) {
        book_reader_unlock(lane);
    }
    return is_still_idle;
}

// Whether that counter may have counted. The others are not touched: even a read would make the
// kernel provide their pages.
static bool may_have_counted(const struct lane_header *lane, uint32_t counter)
{
    const volatile uint64_t *used = lane->book.used;
    return (used[counter / 64] >> counter % 64 & 1) != 0;
}

// Leave the book as if the thread had sent it all.
static void empty(struct lane_header *lane)
{
    struct book_counter *counters = lane_book_tables(lane)->counters;
    for (uint32_t i = 0; i < BOOK_COUNTERS; i++) {
        if (may_have_counted(lane, i)) {
            counters[i].row = 0;
        }
    }
    memset(lane->book.used, 0, sizeof(lane->book.used));
    lane->book.has_counted = 0;
}

enum err book_reader_take(struct lane_header *lane, bool is_alive, struct u64_vec *out)
{
    if (!book_reader_has_counted(lane)) {
        return ERR_OK;
    }
    // Acquire: pairs with the thread's release of write_pos.
    const uint64_t write_pos = atomic_load_explicit(&lane->write_pos, memory_order_acquire);
    const uint64_t mark = *(const volatile uint64_t *)&lane->book.mark;
    for (uint32_t i = 0; i < BOOK_COUNTERS; i++) {
        struct book_counter counter;
        if (!may_have_counted(lane, i)) {
            continue;
        }
        memcpy(&counter, lane_book_tables(lane)->counters + i, sizeof(counter));
        const bool was_sent = counter.is_sending != 0 && write_pos >= mark;
        uint64_t words[BOOK_WORDS_MAX];
        const uint32_t count = counter.row != 0 && !was_sent ? book_record(&counter, words) : 0;
        for (uint32_t k = 0; k < count; k++) {
            TRY(u64_vec_push(out, words[k]));
        }
    }
    if (is_alive) {
        empty(lane);
    }
    return ERR_OK;
}

bool book_reader_give_back(struct lane_header *lane)
{
    if (*(const volatile uint32_t *)&lane->book.has_counted != 0) {
        return false;
    }
    memset(lane->book.used, 0, sizeof(lane->book.used));
    // A counter of zeros is an unused one. If the pages stay, so do counters that are sent.
    (void)madvise(lane_book_tables(lane), LANE_BOOK_BYTES, MADV_REMOVE);
    return true;
}
