// SPDX-License-Identifier: MIT
// abi_hooks (x86-64): hooks of functions that change every register that the ABI lets them change.
//
// A stub (session/agent_hooks.h) jumps to one in place of the function, with its arguments and, as
// the fifth, the address of its trampoline. So it needs to save no register for the caller, and its
// frame is directly below the caller's. The kinds are those whose functions have at most four
// arguments, but the rarest.
//
// The hook of a throwing operator new leaves no frame when the operator throws, as its entry does
// (agent_entries.c).
// Context: T, in place of a patched function. errno is the original's.
#pragma once

#include <stdint.h>

void *abi_hook_malloc(uint64_t size, uint64_t b, uint64_t c, uint64_t d, uint64_t original);
void *abi_hook_calloc(uint64_t count, uint64_t size, uint64_t c, uint64_t d, uint64_t original);
void *abi_hook_aligned_alloc(uint64_t a, uint64_t size, uint64_t c, uint64_t d, uint64_t original);
void *abi_hook_new(uint64_t size, uint64_t b, uint64_t c, uint64_t d, uint64_t original);
void *abi_hook_realloc(uint64_t old, uint64_t size, uint64_t c, uint64_t d, uint64_t original);
int abi_hook_posix_memalign(
    uint64_t out, uint64_t alignment, uint64_t size, uint64_t d, uint64_t original);
void abi_hook_free(uint64_t block, uint64_t b, uint64_t c, uint64_t d, uint64_t original);
