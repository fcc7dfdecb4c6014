// SPDX-License-Identifier: MIT
// record_mapping: from what mmap and its kin did to what the recorder reads.
//
// Context: T, called by the hooks without the guard held. errno is kept. Nothing is recorded, and
// nothing else happens, in a process without a session.
#pragma once

#include "target/preload/process/deferred.h"
#include "target/preload/process/thread_state.h"
#include "target/unwind/unwind.h"

// `change`, whose number is set here, was made by the function that returns to `caller`.
void record_mapping(const struct unwind_regs *caller, const struct mapping_change *change);

// Sends a change whose stack is known by its slot. The guard is held.
void record_mapping_send(struct thread_state *t,
                         const struct mapping_change *change,
                         uint32_t slot);
