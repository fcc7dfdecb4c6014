// SPDX-License-Identifier: MIT
// wrapper_frames: which functions only pass an allocation on.
//
// A *call site* is the innermost frame of a stack that somebody wrote in order to allocate: not
// operator new, not std::allocator, not the inside of std::vector, not strdup or xmalloc. People
// look for the line that they can change. The whole stack is still shown; this only chooses its
// heading. Context: H; pure.
#pragma once

#include <stdbool.h>

// `function` is the demangled name, `file` the source file or "". Neither is NULL.
bool is_wrapper_frame(const char *function, const char *file);
