// SPDX-License-Identifier: MIT
// proof: how much of a deep remembered stack must be read back to prove all of it.
//
// Consider a walk that has met a remembered frame, and frames with intact words from there outwards
// without a gap. They are on the stack now, each called by the next. If a frame further out has
// changed since the last walk, the thread has left all these frames, and has called each of them
// again: so it has made at least as many calls. The elapsed time limits the number of calls. If
// more frames than that are intact, nothing further out has changed, and it need not be read.
//
//   entry ....................... from ............................ met ..... leaf
//         not read: proved by     [ read back, at least `evidence` ]
//
// So the cost of a deep stack is in proportion to the thread's work since the last walk. A thread
// that copies whole stacks to and fro (some coroutines do) writes no faster than it calls: a frame
// is at least 16 bytes.
//
// Only for stacks of more than PROOF_DEEP frames: in smaller stacks, reading the frames costs less
// than reading the clock. Invariant: a clock that is stopped, missing, or another processor's
// proves nothing; then everything is read. Context: T, its thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "moment_arch.h"
#include "target/unwind/walk/walk_cache.h"

#define PROOF_DEEP 2048u // frames

// Upper limit of calls that a processor may have begun before it read its clock, and not completed.
#define PROOF_IN_FLIGHT 512u

// Whether the processor has a suitable clock: determined once, since this is slow in a virtual
// machine.
enum proof_clock {
    PROOF_CLOCK_UNKNOWN = 0,
    PROOF_CLOCK_NONE,
    PROOF_CLOCK_TELLS,
};

struct proof {
    uint32_t evidence; // frames that must be intact to prove those further out
    uint32_t from;     // the outermost remembered frame that was read back
};

// Return the most calls that a thread can have made from `then` to `now`; UINT32_MAX if unknown.
uint32_t proof_calls_between(const struct moment *then, const struct moment *now);

// Read back until the first `known` frames are proved, or fewer; return their number. Begin with
// `from` = `known`.
uint32_t proof_extend(struct proof *proof, const struct walk_cache *r, uint32_t known);

// Whether the first `known` frames, known > 0, are proved already.
ALWAYS_INLINE bool proof_holds(const struct proof *proof, uint32_t known)
{
    return proof->from == 0 || (known > proof->from && known - proof->from >= proof->evidence);
}
