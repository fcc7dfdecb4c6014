// SPDX-License-Identifier: MIT
// process_entry: how a process that may be recorded finds its session.
//
// It has two implementations: process_entry.c for the preload library, which finds the session by
// the environment, and target/agent/agent_entry.c for the agent, which learns the session from the
// recorder. Context: T, called by process.c while the process joins.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"

struct process_page;
struct session_mapping;

// Whether this process may join by now.
bool process_entry_is_open(void);

// Set *page to a page of zeros that is wiped in a forked child. False: there is none, and nothing
// may be recorded, because a child would write into its parent's lanes.
bool process_entry_page(struct process_page **page);

// Whether `mapping` is the session of this process, or of the process that it was forked from.
bool process_entry_is_in(const struct session_mapping *mapping);

// Whether this process was forked from one that had found the session. `was_in`: the result of
// process_entry_is_in before the session was found.
bool process_entry_is_forked(bool was_in);

// Map the session of a fresh image. On failure the process is not recorded.
enum err process_entry_find_session(struct session_mapping *mapping) MUST_USE;

// Return where the address of the session's words is (words_source.mapped); NULL: its file has to
// be opened.
uint64_t *process_entry_mapped_words(void);

// Return the sizes below which blocks have tiny words (process_words_open); NULL: none.
const _Atomic uint32_t *process_entry_tiny_below(void);

// Return the enum process_flags of this image, without PROCESS_FORKED.
uint32_t process_entry_flags(bool is_forked);
