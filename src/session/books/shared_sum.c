// SPDX-License-Identifier: MIT
#include "session/books/shared_sum.h"

#include "base/minmax.h"

#define NUMBER_BITS SUM_NUMBER_BITS
#define NUMBER_MASK (((uint64_t)1 << NUMBER_BITS) - 1)
#define PEAK_MAX    (((uint64_t)1 << SUM_BITS) - 1)

static struct words16 packed(const struct sum_value *value)
{
    return (struct words16){
        .low = (uint64_t)value->sum_bytes << NUMBER_BITS | (value->number & NUMBER_MASK),
        .high = value->peak_bytes << NUMBER_BITS | value->number >> NUMBER_BITS};
}

static struct sum_value unpacked(const struct words16 *state)
{
    return (struct sum_value){.sum_bytes = (int64_t)state->low >> NUMBER_BITS,
                              .peak_bytes = state->high >> NUMBER_BITS,
                              .number = (uint32_t)((state->high & NUMBER_MASK) << NUMBER_BITS |
                                                   (state->low & NUMBER_MASK))};
}

// Read the state in two halves, which may be of two values: an exchange then fails.
static struct words16 read_halves(const struct shared_sum *sum)
{
    const volatile struct words16 *state = &sum->state;
    return (struct words16){.low = state->low, .high = state->high};
}

static void choose_batch(struct shared_sum *sum, uint64_t peak_bytes)
{
    // Relaxed: a bound. Of two threads that choose at once, the later one is right enough: the
    // next peak or thread chooses again.
    const uint32_t threads = atomic_load_explicit(&sum->thread_count, memory_order_relaxed);
    const uint64_t batch = max_u64(peak_bytes / SUM_PEAK_SHARES / max_u64(threads, 1),
                                   threads <= 1 ? SUM_ALONE_MIN : SUM_BATCH_MIN);
    if (batch != atomic_load_explicit(&sum->batch_bytes, memory_order_relaxed)) {
        atomic_store_explicit(&sum->batch_bytes, batch, memory_order_relaxed);
    }
}

// Bring the copy of the number up to date. It never decreases.
static void repair_number(struct shared_sum *sum, uint32_t number)
{
    uint32_t copy = atomic_load_explicit(&sum->number, memory_order_relaxed);
    while (copy < number &&
           !atomic_compare_exchange_weak_explicit(&sum->number, &copy, number, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

// Acquire: pairs with the release in shared_sum_leave, after the last addition of a thread.
static bool is_alone(const struct shared_sum *sum)
{
    return atomic_load_explicit(&sum->thread_count, memory_order_acquire) == 1;
}

// Acquire: pairs with the release in shared_sum_join; who has joined so far is in the count that is
// read next.
static uint32_t joins_of(const struct shared_sum *sum)
{
    return atomic_load_explicit(&sum->joins, memory_order_acquire);
}

// Return the value with the part added. `copy`: the number that the thread has seen.
static struct sum_value
with_part(const struct sum_value *before, const struct sum_part *part, uint32_t copy)
{
    struct sum_value after = *before;
    // Unsigned: the recorder adds the part of a killed thread, which may be anything.
    const int64_t own_peak = (int64_t)((uint64_t)part->base_bytes + (uint64_t)part->room_bytes);
    if (part->room_bytes != SUM_NOT_ALONE && own_peak > (int64_t)before->peak_bytes) {
        after.peak_bytes = (uint64_t)own_peak & PEAK_MAX;
        after.number = max_u32(before->number + (before->number < UINT32_MAX), copy);
    }
    after.sum_bytes = (int64_t)((uint64_t)after.sum_bytes + (uint64_t)part->unsent_bytes);
    if (after.sum_bytes > (int64_t)after.peak_bytes) {
        after.peak_bytes = (uint64_t)after.sum_bytes & PEAK_MAX;
        after.number = max_u32(after.number, copy);
        after.number += after.number < UINT32_MAX;
    }
    return after;
}

// A new peak was set. Relaxed: a bound, of a moment about now.
static void note_error(struct shared_sum *sum)
{
    const uint64_t batch = atomic_load_explicit(&sum->batch_bytes, memory_order_relaxed);
    const uint32_t threads = atomic_load_explicit(&sum->thread_count, memory_order_relaxed);
    const uint64_t stray = atomic_load_explicit(&sum->stray_bytes, memory_order_relaxed);
    atomic_store_explicit(&sum->peak_error_bytes, threads > 1 ? batch * threads + stray : 0,
                          memory_order_relaxed);
}

struct sum_value shared_sum_send(struct shared_sum *sum, struct sum_part *part)
{
    // Both before the exchange: what others have added until they left is in its result, and who
    // joins afterwards shows in `joins`.
    part->joins = joins_of(sum);
    const bool alone = is_alone(sum);
    const uint32_t copy = shared_sum_number(sum);
    struct words16 seen = read_halves(sum);
    struct sum_value before;
    struct sum_value after;
    do {
        before = unpacked(&seen);
        after = with_part(&before, part, copy);
    } while (!arch_exchange16(&sum->state, &seen, packed(&after)));
    if (after.number != before.number) {
        note_error(sum);
        choose_batch(sum, after.peak_bytes);
    }
    if (part->room_bytes != SUM_NOT_ALONE) { // it was alone, and may have been the stray
        atomic_store_explicit(&sum->stray_bytes, 0, memory_order_relaxed);
    }
    part->unsent_bytes = 0;
    part->base_bytes = after.sum_bytes;
    part->room_bytes = alone ? (int64_t)after.peak_bytes - after.sum_bytes : SUM_NOT_ALONE;
    repair_number(sum, after.number);
    return after;
}

void shared_sum_note_peak(struct shared_sum *sum, struct sum_part *part)
{
    if (!shared_sum_try_peak(sum, part)) {
        (void)shared_sum_send(sum, part); // its value is in `sum`
    }
}

struct sum_value shared_sum_read(struct shared_sum *sum)
{
    struct sum_part nothing = {.room_bytes = SUM_NOT_ALONE};
    return shared_sum_send(sum, &nothing);
}

void shared_sum_join(struct shared_sum *sum, struct sum_part *part)
{
    const uint32_t count =
        1 + atomic_fetch_add_explicit(&sum->thread_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&sum->joins, 1, memory_order_release); // see joins_of
    *part = (struct sum_part){.room_bytes = SUM_NOT_ALONE};
    if (count == 2) { // until now the batch was for one thread
        atomic_store_explicit(&sum->stray_bytes,
                              atomic_load_explicit(&sum->batch_bytes, memory_order_relaxed),
                              memory_order_relaxed);
    }
    choose_batch(sum, shared_sum_send(sum, part).peak_bytes);
}

void shared_sum_leave(struct shared_sum *sum, uint32_t threads)
{
    if (threads != 0) {
        // Release: see is_alone.
        atomic_fetch_sub_explicit(&sum->thread_count, threads, memory_order_release);
        choose_batch(sum, shared_sum_read(sum).peak_bytes);
    }
}
