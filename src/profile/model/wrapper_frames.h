// SPDX-License-Identifier: MIT
// wrapper_frames: which functions only pass an allocation on.
//
// A *call site* is the innermost frame of a stack that was written in order to allocate. operator
// new, std::allocator, the inside of std::vector, strdup and xmalloc are wrapper frames: users look
// for the line that they can change. The call site is only the heading of a stack; the whole stack
// is shown. Context: H; pure.
#pragma once

#include <stdbool.h>

// `function` is the demangled name, `file` the source file or "". Neither is NULL.
bool is_wrapper_frame(const char *function, const char *file);
