// SPDX-License-Identifier: MIT
// record_mapping: turns the calls of mmap and its kin into records for the recorder.
//
// A mapping_of_... states what a successful call has changed, by its arguments and its result.
// `number` is from process_next_mapping(), before the call.
//
// Context: T, called by the hooks without the guard held. errno is kept. In a process without a
// session the functions do nothing.
#pragma once

#include "target/preload/process/deferred.h"
#include "target/preload/process/thread_state.h"
#include "target/unwind/unwind.h"

struct mapping_change mapping_of_mmap(uint64_t mapped, uint64_t size_bytes, uint64_t flags);
struct mapping_change mapping_of_munmap(uint64_t address, uint64_t size_bytes, uint64_t number);
struct mapping_change mapping_of_mremap(uint64_t mapped,
                                        uint64_t size_bytes,
                                        uint64_t flags,
                                        uint64_t old,
                                        uint64_t old_size_bytes,
                                        uint64_t number);

// The program's break moved from `before` to `after`.
struct mapping_change mapping_of_break(uint64_t before, uint64_t after, uint64_t number);

// Record `change`, unless nothing changed. It was made by the function that returns to `caller`.
// This sets the change's number.
void record_mapping(const struct unwind_regs *caller, const struct mapping_change *change);

// Send a change whose stack is known by its slot. The guard is held.
void record_mapping_send(struct thread_state *t,
                         const struct mapping_change *change,
                         uint32_t slot);
