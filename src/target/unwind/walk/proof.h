// SPDX-License-Identifier: MIT
// proof: how much of a deep walk_cache stack must be read back to prove all of it.
//
// Frames whose words are intact, from the one that a walk has met outwards without a gap, are on
// the stack now, each called by the next. If something further out has changed since the last walk,
// the thread has left all of these frames in between, and has called each of them again: so it has
// made at least as many calls. In the time that passed it can have made only so many. Where more
// frames than that are intact, nothing further out has changed, and it need not be read.
//
//   entry ....................... from ............................ met ..... leaf
//         not read: proved by     [ read back, at least `evidence` ]
//
// So what a deep stack costs is in proportion to what the thread did since the last walk. A thread
// that copies whole stacks to and fro (some coroutines do) writes no faster than it calls: a frame
// is 16 bytes at least.
//
// Only for stacks of more than PROOF_DEEP frames: the rest is cheaper read than the time asked for.
// Invariant: a clock that stands still, is not there, or is another processor's proves nothing;
// then everything is read. Context: T, its thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "moment_arch.h"
#include "target/unwind/walk/walk_cache.h"

#define PROOF_DEEP 2048u // frames

// Calls that a processor may have begun before it told the time, and not completed.
#define PROOF_IN_FLIGHT 512u

// Whether moments can be told: asked once, since it is slow in a virtual machine.
enum proof_clock {
    PROOF_CLOCK_UNKNOWN = 0,
    PROOF_CLOCK_NONE,
    PROOF_CLOCK_TELLS,
};

struct proof {
    uint32_t evidence; // frames that must be intact to prove those further out
    uint32_t from;     // of the walk_cache frames, the outermost that was read back
};

// How many calls a thread can have made from `then` to `now`; UINT32_MAX if that is not known.
uint32_t proof_calls_between(const struct moment *then, const struct moment *now);

// Reads back until the first `known` frames are proved, or fewer that are, whose number it returns.
// Begin with `from` = `known`.
uint32_t proof_extend(struct proof *proof, const struct walk_cache *r, uint32_t known);

// True if the first `known` frames, known > 0, are proved already.
ALWAYS_INLINE bool proof_holds(const struct proof *proof, uint32_t known)
{
    return proof->from == 0 || (known > proof->from && known - proof->from >= proof->evidence);
}
