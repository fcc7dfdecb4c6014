// SPDX-License-Identifier: MIT
// stamp: moments that are in order across threads and processes.
//
// While several threads record, each event that is sent has a stamp, by which the recorder puts
// the events of all lanes into their order. The stamp of an allocation is taken after the allocator
// returned, that of a free before the allocator is called. So of two events of one address the one
// that happened first has the lower stamp: whoever gets an address received it from somebody who
// had stamped it before.
//
// Stamps are the processor's clock where the kernel takes that for its own, for then it is the same
// on all processors. Elsewhere they are numbers from a counter in the session.
//
// Which it is R says before any process joins. Context: T and H, async-signal-safe.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/layout.h"
#include "stamp_arch.h"

#define STAMP_BITS 56u
#define STAMP_MAX  (((uint64_t)1 << STAMP_BITS) - 1)

// Never 0.
ALWAYS_INLINE uint64_t stamp_now(struct session_header *session)
{
    if (LIKELY(session->stamp_source == STAMPS_OF_PROCESSOR)) {
        return (stamp_arch_read() - session->stamp_base) & STAMP_MAX;
    }
    // Release and acquire: who takes a later number has seen what came before an earlier one.
    return atomic_fetch_add_explicit(&session->stamp_count, 1, memory_order_acq_rel) + 1;
}

// The stamp of a moment at which stamp_arch_read_early was read, before the session was known; with
// the counter, now. Never 0.
ALWAYS_INLINE uint64_t stamp_of_reading(struct session_header *session, uint64_t reading)
{
    const uint64_t stamp = (reading - session->stamp_base) & STAMP_MAX;
    return session->stamp_source == STAMPS_OF_PROCESSOR && stamp != 0 ? stamp : stamp_now(session);
}
