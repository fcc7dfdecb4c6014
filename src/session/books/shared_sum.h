// SPDX-License-Identifier: MIT
// shared_sum: the live bytes of a heap that many threads change, and the highest sum so far.
//
// A thread keeps the bytes that it has not added yet. When they leave [-batch, batch], it adds them
// and sees the new sum. Sum, peak and the number of the peak change in one exchange of 16 bytes: a
// thread that loses its processor between two of them would publish a maximum when the heap is
// elsewhere. The first peak has number 1, each higher one the next.
//
//   line 1   sum 48, peak 48, number 32    written by each addition
//   line 2   number, threads               read by each event, written at a new peak
//   line 3   kept, most                    read by each addition, written if it is at the top
//
// Bound. An event that stays in the batch counts when its thread keeps it, one that is added counts
// at the exchange. Both are between its call and its return: of two that overlap in time, either
// may have been the first. So at any moment the sum differs from the live bytes by what the threads
// keep, and `kept` is at least that: each thread's batch is in it before the thread uses it. After
// each change of the sum, of its threads or of their batches, `most` is at least the sum and what
// is kept. So the true peak is at most `most`. It is not below the peak by more than `most` is
// above it, because what was kept as the peak was set is in `most`, too. What a thread alone keeps
// is known, see below; it notes that when it finds that others have changed the sum.
//
// Owners (peak_share.h) need the number at each event. It has a copy in line 2, because each
// addition takes line 1 away from all other processors. A thread may lose its processor between the
// exchange and the copy; so each thread that adds compares the copy with the number, and repairs
// it. An event that is added learns from its exchange which peak was before it, so it is on the
// right side of each, however large it is. So what a row held at the peak is wrong by at most
// another batch for each thread.
//
// The batch is a 256th of the peak, divided by the threads, and at least SUM_BATCH_MIN. A thread
// chooses it as it adds: the batches of threads that sleep are of earlier peaks and threads.
//
// Alone. While one thread counts, no other changes the sum, so the thread knows each peak by
// itself: when it frees and its part is above all before (room_bytes), the heap was at a new peak.
// It then takes the next number, in the copy, and brings the peak with its part, unless others have
// set one since. So peak and owners are exact, whatever the batch is, and nothing counts as kept;
// the batch has another minimum, for what others find kept when they join. If the sum has changed
// meanwhile, or another thread has joined, the thread adds its part and is not alone any more. To
// compare the sum would not do: a thread that comes and goes leaves it as it was.
//
// Invariant: the peak is at least the sum, and 0. Trust: R copies and bounds what it reads.
// Context: T and H, any thread, async-signal-safe: a handler in a hook needs a part of its own.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "exchange16_arch.h"

#define SUM_BATCH_MIN    48u // bytes
#define SUM_PEAK_SHARES  256u
#define SUM_ALONE_MIN    1024u
#define SUM_ALONE_SHARES 1024u
#define SUM_BITS         48
#define SUM_NUMBER_BITS  (64 - SUM_BITS)

struct shared_sum {
    // By arch_exchange16 alone. low = sum 48 | number's low 16 bits; high = peak 48 | the others.
    struct words16 state;
    _Alignas(64) _Atomic uint32_t number; // the copy; more than that in `state` only by one alone
    _Atomic uint32_t thread_count;
    _Atomic uint32_t joins;                   // of threads, ever
    _Atomic uint32_t alone_joins;             // as a thread last found that it was alone
    _Alignas(64) _Atomic uint64_t kept_bytes; // what all threads may keep
    _Atomic uint64_t most_bytes;              // what the heap may have had
};

// A thread's part.
struct sum_part {
    int64_t unsent_bytes; // not in the sum yet
    int64_t room_bytes;   // what is above it is a new peak; SUM_NOT_ALONE: it cannot know
    uint64_t batch_bytes; // what it may keep
    int64_t base_bytes;   // the sum when it was added last,
    uint32_t joins;       // how many threads had joined before,
    uint32_t number;      // and the number of the peak after
    uint32_t is_sending;  // while it is added, and may be in the sum already
};
#define SUM_NOT_ALONE INT64_MAX

struct sum_value {
    int64_t sum_bytes; // may be below 0: frees may be added before their allocations
    uint64_t peak_bytes;
    uint32_t number;        // of the peak; 0: there was none
    uint32_t before_number; // of the latest peak before the addition
};

// A thread begins to count, with a new part. It ends: its part was added, and keeps nothing more.
void shared_sum_join(struct shared_sum *sum, struct sum_part *part);
void shared_sum_release(struct shared_sum *sum, struct sum_part *part);
void shared_sum_leave(struct shared_sum *sum, uint32_t threads);

// Add the thread's part now, and return the new value.
struct sum_value shared_sum_send(struct shared_sum *sum, struct sum_part *part);

// Add bytes that are in no part.
void shared_sum_change(struct shared_sum *sum, int64_t bytes);

// Return how far the peak of the value, which was just read, may be off.
struct sum_value shared_sum_read(struct shared_sum *sum);
uint64_t shared_sum_error(const struct shared_sum *sum, const struct sum_value *value);

// A thread was killed while it added the part, and it is unknown whether it did. From now on the
// bound of the peak has it.
void shared_sum_doubt(struct shared_sum *sum, const struct sum_part *part);

// The part is above its room, and about to decrease: note the peak, if the thread is alone.
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

// Before a block is freed, and before its event asks for the number. false: the thread is not alone
// any more, and has to add its part first.
MUST_USE ALWAYS_INLINE bool shared_sum_before_free(struct shared_sum *sum, struct sum_part *part)
{
    return LIKELY(part->unsent_bytes <= part->room_bytes) || shared_sum_try_peak(sum, part);
}

// Return the number of the latest peak, for peak_share_add before an event is added.
ALWAYS_INLINE uint32_t shared_sum_number(const struct shared_sum *sum)
{
    // Relaxed: what a thread has seen decides which events are before a peak, whatever it is.
    return atomic_load_explicit(&sum->number, memory_order_relaxed);
}

// Whether the thread may keep what it has without adding it to the sum.
ALWAYS_INLINE bool shared_sum_may_keep(const struct sum_part *part)
{
    const int64_t batch = (int64_t)part->batch_bytes;
    return LIKELY(part->unsent_bytes <= batch && part->unsent_bytes >= -batch);
}

// Count an event of the thread, which has seen peak `number`. Return that of the latest peak before
// the event.
ALWAYS_INLINE uint32_t shared_sum_add(struct shared_sum *sum,
                                      struct sum_part *part,
                                      uint32_t number,
                                      int64_t delta_bytes)
{
    part->unsent_bytes += delta_bytes;
    return shared_sum_may_keep(part) ? number : shared_sum_send(sum, part).before_number;
}
