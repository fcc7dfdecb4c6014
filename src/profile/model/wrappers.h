// SPDX-License-Identifier: MIT
// wrappers: which functions only pass an allocation on.
//
// A *call site* is the innermost frame of a stack that was written in order to allocate. operator
// new, the inside of std::vector, strdup and a program's own xmalloc are wrapper frames: users look
// for the line that they can change. There are six sources of wrappers:
//
//   by name   the standard libraries' functions, and names that many programs use: is_wrapper_frame
//             of function_name.h
//   by file   functions of libraries that were compiled with the program, in the folders of package
//             managers and in /usr/include, but not those of main's own crate
//   start     functions without a name of libc, libstdc++ and the loader that only such functions
//             and wrappers call: they start threads and programs
//   found     functions of the recording that are called as an allocator is: by many functions, for
//             blocks of many sizes
//   asked     functions that match the user's expressions
//   Python    in stacks with functions of Python (--python): all native frames that these call, and
//             the interpreter's frames that call the outermost
//
// A function is found if its name contains a word such as "alloc" and it has several callers. Any
// other function needs many callers, many sizes, at most two places that allocate, and a large
// share of all allocations. The search is repeated for the callers, because a program may have
// wrappers of wrappers. Call sites change with each search, so it looks at all rows again.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/model/code_index.h"
#include "recording/format/tables.h"

// Call site of a stack: the innermost location that is not a wrapper. Without one, the innermost
// one of a library, as in a library's own thread, or the innermost one.
struct call_site_location {
    uint32_t location; // REC_NONE for a stack without frames
    uint32_t frame;    // of the recording
    bool is_inlined;
};
struct call_site_location
wrappers_call_site(const struct recording *recording, const struct code_index *code, uint32_t node);

// Keep a wrapper in `site`, the call site so far of a stack that is followed outwards, if it may be
// its call site. Begin with REC_NONE.
void call_site_offer(struct call_site_location *site,
                     const struct code_index *code,
                     struct call_site_location wrapper);

// A function that is a wrapper in this recording, but not by name.
struct wrapper {
    uint32_t function; // in the code index
    bool is_asked;     // by the user, else found
};

DEFINE_VEC(wrapper_vec, struct wrapper);

// Flag a function as wrapper and add it to `out`. Once all are added, flag their locations.
// ERR_NO_MEMORY.
enum err wrappers_add(struct code_index *code, struct wrapper wrapper, struct wrapper_vec *out)
    MUST_USE;
void wrappers_flag_locations(struct code_index *code);

// Find the wrappers of a recording, flag them, and add them to `out`. ERR_NO_MEMORY.
enum err wrappers_find(const struct recording *recording,
                       struct code_index *code,
                       struct wrapper_vec *out) MUST_USE;
