// SPDX-License-Identifier: MIT
#include "session/books/shared_sum.h"

#include "base/minmax.h"

// state.low = sum 48 | number's low 16 bits; state.high = peak 48 | number's high 16 bits.
#define NUMBER_BITS 16
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
    const uint64_t batch =
        max_u64(peak_bytes / SUM_PEAK_SHARES / max_u64(threads, 1), SUM_BATCH_MIN);
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

struct sum_value shared_sum_send(struct shared_sum *sum, struct sum_part *part)
{
    struct words16 seen = read_halves(sum);
    struct sum_value before;
    struct sum_value after;
    do {
        before = unpacked(&seen);
        after = before;
        after.sum_bytes += part->unsent_bytes;
        if (after.sum_bytes > (int64_t)before.peak_bytes) {
            after.peak_bytes = (uint64_t)after.sum_bytes & PEAK_MAX;
            after.number += before.number < UINT32_MAX;
        }
    } while (!arch_exchange16(&sum->state, &seen, packed(&after)));
    part->unsent_bytes = 0;
    repair_number(sum, after.number);
    if (after.number != before.number) {
        choose_batch(sum, after.peak_bytes);
    }
    return after;
}

struct sum_value shared_sum_read(struct shared_sum *sum)
{
    struct sum_part nothing = {0};
    return shared_sum_send(sum, &nothing);
}

void shared_sum_join(struct shared_sum *sum)
{
    const uint32_t count =
        1 + atomic_fetch_add_explicit(&sum->thread_count, 1, memory_order_relaxed);
    uint32_t most = atomic_load_explicit(&sum->most_threads, memory_order_relaxed);
    while (most < count &&
           !atomic_compare_exchange_weak_explicit(&sum->most_threads, &most, count,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    choose_batch(sum, shared_sum_read(sum).peak_bytes);
}

void shared_sum_leave(struct shared_sum *sum, struct sum_part *part)
{
    const struct sum_value value = shared_sum_send(sum, part);
    atomic_fetch_sub_explicit(&sum->thread_count, 1, memory_order_relaxed);
    choose_batch(sum, value.peak_bytes);
}
