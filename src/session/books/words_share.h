// SPDX-License-Identifier: MIT
// words_share: what a process has in the shared sum (shared_sum.h): its threads, and their bytes.
//
// The process P adds. Who takes a figure out exchanges it for 0, because there are three who may: P
// as it exits, the image that P executes, and the recorder R when P has ended. Context: T and H;
// async-signal-safe. Trust: R bounds what it reads. Relaxed throughout: the figures order nothing.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct words_share {
    _Atomic int64_t added_bytes;
    _Atomic int64_t most_bytes;   // of added_bytes
    _Atomic uint32_t peak_number; // of the sum when added_bytes was taken out, and before that
    _Atomic uint32_t threads;
};

// Bytes are about to be added to the sum for the process.
static inline void words_share_add(struct words_share *share, int64_t bytes)
{
    const int64_t before =
        atomic_fetch_add_explicit(&share->added_bytes, bytes, memory_order_relaxed);
    const int64_t now = (int64_t)((uint64_t)before + (uint64_t)bytes); // of false ones, too
    int64_t most = atomic_load_explicit(&share->most_bytes, memory_order_relaxed);
    while (now > most &&
           !atomic_compare_exchange_weak_explicit(&share->most_bytes, &most, now,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

// Take the bytes out, and return them.
static inline int64_t words_share_take_bytes(struct words_share *share)
{
    return atomic_exchange_explicit(&share->added_bytes, 0, memory_order_relaxed);
}

static inline void words_share_add_thread(struct words_share *share)
{
    atomic_fetch_add_explicit(&share->threads, 1, memory_order_relaxed);
}

// Take all threads out, and return how many there were.
static inline uint32_t words_share_take_threads(struct words_share *share)
{
    return atomic_exchange_explicit(&share->threads, 0, memory_order_relaxed);
}

// Take one thread out, and return 1; 0: it is out.
static inline uint32_t words_share_take_thread(struct words_share *share)
{
    uint32_t threads = atomic_load_explicit(&share->threads, memory_order_relaxed);
    while (threads != 0 &&
           !atomic_compare_exchange_weak_explicit(&share->threads, &threads, threads - 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    return threads != 0;
}
