// SPDX-License-Identifier: MIT
// rss_allocators: the heap's resident memory, by allocator.
//
// A process may have several allocators: libc's, and one in a library or in the executable. What
// one keeps is not returned by the other one's calls. The module whose allocator has a part of the
// heap names it; of some parts that is unknown, and they are one line.
// Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/tables/rss_breakdown.h"

struct rss_allocator {
    rec_string module; // path; 0: unknown
    const char *name;  // borrowed; in lower case: "jemalloc"; the file's name; "" if unknown
    uint64_t live_bytes;
    uint64_t rounding_bytes;
    uint64_t kept_bytes;
    uint64_t released_bytes; // of these: what a release of free memory would return
    uint32_t areas;          // unnamed ones with kept memory: of glibc, the heaps of its arenas
    uint64_t rest_bytes;     // not explained: allocated before recording, or free
};

DEFINE_VEC(rss_allocator_vec, struct rss_allocator);

// The name of a module's allocator: of the one whose functions were hooked in it, else the file's.
const char *rss_allocator_name(const struct profile *profile, rec_string module);

// Append the allocators of a split with parts, the largest first. ERR_NO_MEMORY.
enum err rss_allocators_list(const struct profile *profile,
                             const struct rss_breakdown_split *split,
                             struct rss_allocator_vec *out) MUST_USE;
