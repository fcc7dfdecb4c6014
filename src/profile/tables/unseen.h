// SPDX-License-Identifier: MIT
// unseen: processes whose memory the recording mostly does not show.
//
// Programs that were executed but not recorded are a table of the recording. The processes found
// here were recorded, but use hardly any of the heap that cairn records:
//
//   UNSEEN_MALLOC   a built-in malloc, which a preloaded library cannot replace
//   UNSEEN_RUNTIME  a runtime with an allocator of its own (symbols/runtimes), which no variable
//                   made call malloc for each object
//   UNSEEN_MAPPED   the program mapped nearly all anonymous memory itself, many times the size of
//                   its heap: it has an allocator that cairn cannot see
//
// UNSEEN_MAPPED is a guess by sizes. It is made only for clear cases: MAPPED_BYTES_MIN and
// MAPPED_TIMES_HEAP in unseen.c. The table covers the whole run, whatever the filters. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "profile/model/profile.h"

enum unseen_kind {
    UNSEEN_MALLOC,
    UNSEEN_RUNTIME,
    UNSEEN_MAPPED,
};

struct unseen {
    enum unseen_kind kind;
    uint32_t process;         // index
    uint64_t anonymous_bytes; // resident at the process's highest snapshot; 0 without one
    uint64_t mapped_bytes;    // part of it that the program mapped itself
    uint64_t heap_bytes;      // part of it in the recorded allocator's heap
    uint32_t node;            // the stack that mapped most, or REC_NONE
    bool is_mapped;           // mapped_bytes are as much as UNSEEN_MAPPED needs
    const char *runtime;      // its key, of UNSEEN_RUNTIME; borrowed from the profile
};

DEFINE_VEC(unseen_vec, struct unseen);

// At most one for each process, in the order of processes.
enum err unseen_collect(const struct profile *profile, struct unseen_vec *out) MUST_USE;

// "malloc", "mapped" or the key of the runtime.
const char *unseen_key(const struct unseen *unseen);

// Append why its heap is not seen, and what helps: a sentence without its subject, the process.
void unseen_explain(const struct unseen *unseen, struct strbuf *out);

// The number of programs that were executed but not recorded, listed by name or not.
uint64_t unseen_execs(const struct recording *recording);
