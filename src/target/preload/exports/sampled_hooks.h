// SPDX-License-Identifier: MIT
// sampled_hooks: malloc and calloc of a thread that has a filter (thread_way.h).
//
// They are the shortest way of the hooks that nearly all calls take with `cairn record --sample`.
// They are compiled without frame pointers, and jump to a function with a frame for the rare block
// that is chosen. Context: T, the hook jumps to them.
#pragma once

#include <stddef.h>

void *malloc_sampled(size_t size);
void *calloc_sampled(size_t count, size_t size);
