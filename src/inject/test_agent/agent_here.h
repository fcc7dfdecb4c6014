// SPDX-License-Identifier: MIT
// agent_here (AArch64): the agent in this process, by the injector's own code but for what needs
// ptrace, and a session whose recorder is the test.
//
// Owns one agent until the process ends. Context: tests; one thread, but the functions that it
// patches may be called by any. Failure: a message, and abort.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "session/agent_page.h"
#include "session/wire.h"

enum {
    RECORDS_MAX = 16384,
    RECORD_LEAVES = 4,
};

// A record of wire.h: its first words, and of a STACK the last frames, the leaf first.
struct record {
    uint64_t words[4];
    uint64_t leaves[RECORD_LEAVES];
};

struct records {
    struct record items[RECORDS_MAX];
    size_t count;
};

// Map the agent, tell it of this program, of itself and of a session, and enable it. Once.
struct agent_page *agent_here_begin(void);

// Return the agent's file.
struct bytes agent_here_file(void);

// Patch a function of this program or of libc. `nothrow`: the address of its form that returns
// NULL, or 0. Returns the patch's index.
uint32_t agent_here_patch(uint64_t function, enum agent_hook hook, uint64_t nothrow);
void agent_here_unpatch(uint32_t index);

// Take what all threads have sent since the last call.
void agent_here_take(struct records *out);

// Return how many frees the threads have counted of blocks whose allocations no hook has seen.
uint64_t agent_here_unknown_frees(void);

// Whether a frame of a STACK is that address of this program.
bool agent_here_is_frame(uint64_t frame, const char *pc);

static inline bool record_is(const struct record *record, enum wire_tag tag)
{
    return (record->words[0] & 0xff) == tag;
}
