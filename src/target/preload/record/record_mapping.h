// SPDX-License-Identifier: MIT
// record_mapping: turns the calls of mmap and its kin into records for the recorder.
//
// Context: T, called by the hooks without the guard held. errno is kept. In a process without a
// session the functions do nothing.
#pragma once

#include "target/preload/process/deferred.h"
#include "target/preload/process/thread_state.h"
#include "target/unwind/unwind.h"

// Record `change`, made by the function that returns to `caller`. This sets the change's number.
void record_mapping(const struct unwind_regs *caller, const struct mapping_change *change);

// Send a change whose stack is known by its slot. The guard is held.
void record_mapping_send(struct thread_state *t,
                         const struct mapping_change *change,
                         uint32_t slot);
