// SPDX-License-Identifier: MIT
// stamp: numbers that order the beginnings and ends of processes (struct process_slot).
//
// Stamps are readings of the processor's clock if the kernel uses that clock too, because then all
// processors agree on it. Otherwise stamps are numbers from a counter in the session.
//
// R chooses the source before any process joins. Context: T and H, async-signal-safe.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/layout.h"
#include "stamp_arch.h"

#define STAMP_BITS 56u
#define STAMP_MAX  (((uint64_t)1 << STAMP_BITS) - 1)

// Return the stamp of now. Never 0.
ALWAYS_INLINE uint64_t stamp_now(struct session_header *session)
{
    if (LIKELY(session->stamp_source == STAMPS_OF_PROCESSOR)) {
        return (stamp_arch_read() - session->stamp_base) & STAMP_MAX;
    }
    // Acquire and release pair with each other: a thread that takes a later number has seen all
    // stores before an earlier one.
    return atomic_fetch_add_explicit(&session->stamp_count, 1, memory_order_acq_rel) + 1;
}

// Return the stamp of the moment at which stamp_arch_read_early made `reading`, before the session
// was known. With the counter, return the stamp of now. Never 0.
ALWAYS_INLINE uint64_t stamp_of_reading(struct session_header *session, uint64_t reading)
{
    const uint64_t stamp = (reading - session->stamp_base) & STAMP_MAX;
    return session->stamp_source == STAMPS_OF_PROCESSOR && stamp != 0 ? stamp : stamp_now(session);
}
