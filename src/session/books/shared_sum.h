// SPDX-License-Identifier: MIT
// shared_sum: the live bytes of a heap that many threads change, and the highest sum so far.
//
// A thread keeps the bytes that it has not added yet. When they leave [-batch, batch], it adds them
// and sees the new sum. Sum, peak and the number of the peak change in one exchange of 16 bytes: a
// thread that loses its processor between two of them would publish a maximum when the heap is
// elsewhere. The first peak has number 1, each higher one the next.
//
//   line 1   sum 48, peak 48, number 32    written by each addition
//   line 2   batch, number, threads        read by each event, written at a new peak
//
// Bound. At any moment the sum differs from the live bytes by what the threads have not added: at
// most a batch for each. So does the peak from the true one. An event counts at some moment between
// its call and its return: of two that overlap in time, either may have been the first.
//
// Owners (peak_share.h) need the number at each event. It has a copy in line 2, because each
// addition takes line 1 away from all other processors. A thread may lose its processor between the
// exchange and the copy; so each thread that adds compares the copy with the number, and repairs
// it. So no thread sees a number that is older than its own latest addition, and what a row
// held at the peak is wrong by at most another batch for each thread.
//
// The batch is a 256th of the peak, divided by the threads, and at least SUM_BATCH_MIN.
//
// Alone. While one thread counts, no other changes the sum, so the thread knows each peak by
// itself: when it frees and its part is above all before (room_bytes), the heap was at a new peak.
// It then takes the next number, in the copy, and brings the peak with its part. So peak and owners
// are exact, whatever the batch is; it is larger then. If the sum has changed meanwhile, or another
// thread has joined, the thread adds its part and is not alone any more. To compare the sum would
// not do: a thread that comes and goes leaves it as it was.
//
// Invariant: the peak is at least the sum, and 0. Trust: R copies and bounds what it reads.
// Context: T and H, any thread, async-signal-safe: a handler in a hook needs a part of its own.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "exchange16_arch.h"

#define SUM_BATCH_MIN   48u // bytes
#define SUM_ALONE_MIN   4096u
#define SUM_PEAK_SHARES 256u
#define SUM_BITS        48
#define SUM_NUMBER_BITS (64 - SUM_BITS)

struct shared_sum {
    // By arch_exchange16 alone. low = sum 48 | number's low 16 bits; high = peak 48 | the others.
    struct words16 state;
    _Alignas(64) _Atomic uint64_t batch_bytes;
    _Atomic uint32_t number; // the copy; more than that in `state` only by a thread alone
    _Atomic uint32_t thread_count;
    _Atomic uint32_t joins; // of threads, ever
    // How far the peak may be off: what the threads had not added when it was set.
    _Atomic uint64_t peak_error_bytes;
    // What a thread that was alone may have kept when the second one came.
    _Atomic uint64_t stray_bytes;
};

// A thread's part.
struct sum_part {
    int64_t unsent_bytes; // not in the sum yet
    int64_t room_bytes;   // what is above it is a new peak; SUM_NOT_ALONE: it cannot know
    int64_t base_bytes;   // the sum when it was added last,
    uint32_t joins;       // and how many threads had joined before
};
#define SUM_NOT_ALONE INT64_MAX

struct sum_value {
    int64_t sum_bytes; // may be below 0: frees may be added before their allocations
    uint64_t peak_bytes;
    uint32_t number; // of the peak; 0: there was none
};

// A thread begins to count, with a new part. Some threads have ended; their parts were added.
void shared_sum_join(struct shared_sum *sum, struct sum_part *part);
void shared_sum_leave(struct shared_sum *sum, uint32_t threads);

// Add the thread's part now, and return the new value.
struct sum_value shared_sum_send(struct shared_sum *sum, struct sum_part *part);

struct sum_value shared_sum_read(struct shared_sum *sum);

// The part is above its room, and about to decrease: note the peak, or find that the thread is not
// alone.
void shared_sum_note_peak(struct shared_sum *sum, struct sum_part *part);

// Do shared_sum_note_peak if the thread is alone.
ALWAYS_INLINE bool shared_sum_try_peak(struct shared_sum *sum, struct sum_part *part)
{
    // Acquire: the number after the sum, and whether one has come before it changed the sum; then
    // whether others have left since; then whether one has come.
    const uint64_t low = __atomic_load_n(&sum->state.low, __ATOMIC_ACQUIRE);
    const uint32_t number = atomic_load_explicit(&sum->number, memory_order_relaxed);
    if (UNLIKELY(atomic_load_explicit(&sum->thread_count, memory_order_acquire) != 1) ||
        UNLIKELY(atomic_load_explicit(&sum->joins, memory_order_relaxed) != part->joins) ||
        UNLIKELY((int64_t)low >> SUM_NUMBER_BITS != part->base_bytes) ||
        UNLIKELY(number == UINT32_MAX)) {
        return false;
    }
    part->room_bytes = part->unsent_bytes;
    // Relaxed, and no exchange: alone, only this thread writes it.
    atomic_store_explicit(&sum->number, number + 1, memory_order_relaxed);
    return true;
}

// Before a block is freed, and before its event asks for the number.
ALWAYS_INLINE void shared_sum_before_free(struct shared_sum *sum, struct sum_part *part)
{
    if (UNLIKELY(part->unsent_bytes > part->room_bytes)) {
        shared_sum_note_peak(sum, part);
    }
}

// Return the number of the latest peak, for peak_share_add before an event is added.
ALWAYS_INLINE uint32_t shared_sum_number(const struct shared_sum *sum)
{
    // Relaxed: what a thread has seen decides which events are before a peak, whatever it is.
    return atomic_load_explicit(&sum->number, memory_order_relaxed);
}

// Whether a thread may keep so much without adding it to the sum.
ALWAYS_INLINE bool shared_sum_may_keep(const struct shared_sum *sum, int64_t unsent_bytes)
{
    // Relaxed: only a bound, which threads may learn late.
    const int64_t batch = (int64_t)atomic_load_explicit(&sum->batch_bytes, memory_order_relaxed);
    return LIKELY(unsent_bytes <= batch && unsent_bytes >= -batch);
}

// Count an event of the thread.
ALWAYS_INLINE void
shared_sum_add(struct shared_sum *sum, struct sum_part *part, int64_t delta_bytes)
{
    part->unsent_bytes += delta_bytes;
    if (!shared_sum_may_keep(sum, part->unsent_bytes)) {
        (void)shared_sum_send(sum, part); // its value is in `sum`
    }
}
