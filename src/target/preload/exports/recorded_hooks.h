// SPDX-License-Identifier: MIT
// recorded_hooks: malloc, calloc, realloc and free where the event is to be recorded.
//
// hot_hooks.c, which has no frames, jumps to them: so their frame has the place of the hook's, and
// unwind_caller_regs() finds the hook's caller. Context: T.
#pragma once

#include <stddef.h>

void *malloc_recorded(size_t size) __attribute__((visibility("hidden")));
void *calloc_recorded(size_t count, size_t size) __attribute__((visibility("hidden")));
void *realloc_recorded(void *block, size_t size) __attribute__((visibility("hidden")));
void free_recorded(void *block) __attribute__((visibility("hidden")));
