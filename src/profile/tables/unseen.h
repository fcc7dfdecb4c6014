// SPDX-License-Identifier: MIT
// unseen: what a recording does not show, and would not let one guess.
//
// Programs that were executed and not recorded are a table of the recording. Processes whose heap
// is not, or hardly, what they use are found here:
//
//   UNSEEN_MALLOC   a malloc of its own is built in, past which no library comes
//   UNSEEN_GO       a Go program that uses C: Go's heap is its run-time's
//   UNSEEN_MAPPED   the program mapped nearly all anonymous memory itself, many times the size of
//                   its heap: it has an allocator that cairn cannot see
//
// The last is a guess by sizes, made only where they leave little doubt: MAPPED_BYTES_MIN and
// MAPPED_TIMES_HEAP in unseen.c. Of the whole run, whatever the filters. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"

enum unseen_kind {
    UNSEEN_MALLOC,
    UNSEEN_GO,
    UNSEEN_MAPPED,
};

struct unseen {
    enum unseen_kind kind;
    uint32_t process;         // index
    uint64_t anonymous_bytes; // resident, when the process was largest; 0 if nobody looked
    uint64_t mapped_bytes;    // of these, by the program's own calls
    uint64_t heap_bytes;      // and of the allocator that was recorded
    uint32_t node;            // the stack that mapped most, or REC_NONE
};

DEFINE_VEC(unseen_vec, struct unseen);

// One for a process at most, in the order of processes.
enum err unseen_collect(const struct profile *profile, struct unseen_vec *out) MUST_USE;

// "malloc", "go" or "mapped".
const char *unseen_key(enum unseen_kind kind);

// Programs that were executed and are not recorded: all, the named and the others.
uint64_t unseen_execs(const struct recording *recording);
