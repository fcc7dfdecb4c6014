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

// Return the sum. Unsigned: the recorder adds the part of a killed thread, which may be anything.
static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

// Return the value with the part added. `copy`: the number that the thread has seen.
static struct sum_value
with_part(const struct sum_value *before, const struct sum_part *part, uint32_t copy)
{
    struct sum_value after = *before;
    const int64_t own_peak = plus(part->base_bytes, part->room_bytes);
    if (part->room_bytes != SUM_NOT_ALONE && part->number == before->number &&
        own_peak > (int64_t)before->peak_bytes) {
        after.peak_bytes = (uint64_t)own_peak & PEAK_MAX;
        after.number = max_u32(before->number + (before->number < UINT32_MAX), copy);
    }
    after.before_number = max_u32(after.number, copy);
    after.sum_bytes = plus(after.sum_bytes, part->unsent_bytes);
    if (after.sum_bytes > (int64_t)after.peak_bytes) {
        after.peak_bytes = (uint64_t)after.sum_bytes & PEAK_MAX;
        after.number = after.before_number + (after.before_number < UINT32_MAX);
    }
    return after;
}

// Note what the heap may have had, if threads keep so much.
static void note_most(struct shared_sum *sum, int64_t sum_bytes, uint64_t kept_bytes)
{
    const uint64_t now = (sum_bytes > 0 ? (uint64_t)sum_bytes : 0) + kept_bytes;
    // Relaxed, here and below: bounds, which order nothing.
    uint64_t most = atomic_load_explicit(&sum->most_bytes, memory_order_relaxed);
    while (now > most &&
           !atomic_compare_exchange_weak_explicit(&sum->most_bytes, &most, now,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

static uint64_t kept_bytes(const struct shared_sum *sum)
{
    return atomic_load_explicit(&sum->kept_bytes, memory_order_relaxed);
}

// Whether at most one thread counts, and it knows that. After it has left without its part, as
// before an exec, that part is known, too.
static bool is_exact(const struct shared_sum *sum)
{
    // Relaxed: a bound, as above.
    return atomic_load_explicit(&sum->thread_count, memory_order_relaxed) <= 1 &&
           joins_of(sum) == atomic_load_explicit(&sum->alone_joins, memory_order_relaxed);
}

// Return what a thread should keep.
static uint64_t wanted_batch(const struct shared_sum *sum, uint64_t peak_bytes, bool alone)
{
    const uint32_t threads = atomic_load_explicit(&sum->thread_count, memory_order_relaxed);
    return alone ? max_u64(peak_bytes / SUM_ALONE_SHARES, SUM_ALONE_MIN)
                 : max_u64(peak_bytes / SUM_PEAK_SHARES / max_u64(threads, 1), SUM_BATCH_MIN);
}

static void keep(struct shared_sum *sum, struct sum_part *part, uint64_t batch_bytes)
{
    // Unsigned: it may be less than before.
    atomic_fetch_add_explicit(&sum->kept_bytes, batch_bytes - part->batch_bytes,
                              memory_order_relaxed);
    part->batch_bytes = batch_bytes;
}

// Add the part to the state, and return its value after that.
static struct sum_value add(struct shared_sum *sum, const struct sum_part *part)
{
    const uint32_t copy = shared_sum_number(sum);
    struct words16 seen = read_halves(sum);
    struct sum_value after;
    do {
        const struct sum_value before = unpacked(&seen);
        after = with_part(&before, part, copy);
    } while (!arch_exchange16(&sum->state, &seen, packed(&after)));
    repair_number(sum, after.number);
    return after;
}

struct sum_value shared_sum_send(struct shared_sum *sum, struct sum_part *part)
{
    // Both before the exchange: what others have added until they left is in its result, and who
    // joins afterwards shows in `joins`.
    part->joins = joins_of(sum);
    const bool alone = is_alone(sum);
    // A larger batch before it, too, so that each later addition notes it; a smaller one after it.
    const struct words16 seen = read_halves(sum);
    const uint64_t wanted = wanted_batch(sum, unpacked(&seen).peak_bytes, alone);
    if (wanted > part->batch_bytes + part->batch_bytes / 8) { // not at each little step
        keep(sum, part, wanted);
    }
    if (part->room_bytes != SUM_NOT_ALONE) { // so much it had before others changed the sum
        const uint64_t unsent = part->unsent_bytes > 0 ? (uint64_t)part->unsent_bytes : 0;
        note_most(sum, part->base_bytes, min_u64(unsent, part->batch_bytes));
    }
    const uint64_t kept = kept_bytes(sum);
    const struct sum_value after = add(sum, part);
    part->unsent_bytes = 0;
    part->base_bytes = after.sum_bytes;
    part->number = after.number;
    part->room_bytes = alone ? (int64_t)after.peak_bytes - after.sum_bytes : SUM_NOT_ALONE;
    if (alone) {
        atomic_store_explicit(&sum->alone_joins, part->joins, memory_order_relaxed);
    }
    if (wanted < part->batch_bytes) {
        keep(sum, part, wanted);
    }
    // Both: others may begin to keep more before the exchange, and less after it.
    note_most(sum, after.sum_bytes, is_exact(sum) ? 0 : max_u64(kept, kept_bytes(sum)));
    return after;
}

void shared_sum_change(struct shared_sum *sum, int64_t bytes)
{
    const struct sum_part part = {.unsent_bytes = bytes, .room_bytes = SUM_NOT_ALONE};
    if (bytes != 0) {
        const uint64_t kept = kept_bytes(sum);
        const struct sum_value after = add(sum, &part);
        // A thread that is alone has not seen this. What it had before it notes itself.
        const bool is_lower = bytes < 0 && is_exact(sum);
        note_most(sum, after.sum_bytes, is_lower ? 0 : max_u64(kept, kept_bytes(sum)));
    }
}

struct sum_value shared_sum_read(struct shared_sum *sum)
{
    const struct sum_part nothing = {.room_bytes = SUM_NOT_ALONE};
    return add(sum, &nothing);
}

uint64_t shared_sum_error(const struct shared_sum *sum, const struct sum_value *value)
{
    const uint64_t most = atomic_load_explicit(&sum->most_bytes, memory_order_relaxed);
    return most > value->peak_bytes ? most - value->peak_bytes : 0;
}

void shared_sum_doubt(struct shared_sum *sum, const struct sum_part *part)
{
    const int64_t bytes = part->unsent_bytes;
    const uint64_t doubted = min_u64(bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes, PEAK_MAX);
    atomic_fetch_add_explicit(&sum->kept_bytes, doubted, memory_order_relaxed);
    note_most(sum, shared_sum_read(sum).sum_bytes, kept_bytes(sum));
}

void shared_sum_join(struct shared_sum *sum, struct sum_part *part)
{
    atomic_fetch_add_explicit(&sum->thread_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&sum->joins, 1, memory_order_release); // see joins_of
    *part = (struct sum_part){.room_bytes = SUM_NOT_ALONE};
    (void)shared_sum_send(sum, part); // nothing but what others may have kept
}

void shared_sum_release(struct shared_sum *sum, struct sum_part *part)
{
    atomic_fetch_sub_explicit(&sum->kept_bytes, part->batch_bytes, memory_order_relaxed);
    part->batch_bytes = 0;
}

void shared_sum_leave(struct shared_sum *sum, uint32_t threads)
{
    if (threads != 0) {
        // Release: see is_alone.
        atomic_fetch_sub_explicit(&sum->thread_count, threads, memory_order_release);
    }
}
