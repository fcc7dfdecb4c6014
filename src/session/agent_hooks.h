// SPDX-License-Identifier: MIT
// agent_hooks: the kinds of functions that the injector patches in a running process, and what
// their arguments mean.
//
// The injector names the kind of each patched function, and the agent chooses its hook by the kind.
// The table says for each kind what a call does to the heap, so that a hook needs nothing else to
// record it: which argument is the size, with which argument the size is multiplied, and which
// argument is a block that the call frees or resizes.
//
// A patched function begins with a jump to its stub, which is near the module:
//
//   stub:  push index          the patch's number; the agent's table of patches has its trampoline
//          jmp *hook           the address that the agent gives for the kind
//
// So a hook begins with the patch's number at (%rsp), the return address at 8(%rsp), %rsp a
// multiple of 16, and each register as the caller left it. On AArch64 it begins with the number in
// w17, and each register but x16 and x17 as the caller left it. The trampoline does what the
// original function does.
//
// On x86-64 a patched function that changes every register that the ABI lets it change
// (inject/code/changed_registers.h) and has at most four arguments may have another stub:
//
//   stub:  lea trampoline, %r8  where a fifth argument would be
//          jmp *abi_hook        the address that the agent gives for the kind, if there is one
//
// The word before the trampoline is the address of a throwing operator's nothrow form. Such a hook
// begins as a function of C does, and may change what one may. Context: T and H; no code.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum agent_effect {
    AGENT_ALLOCATES,           // returns a block, or NULL
    AGENT_ALLOCATES_OR_THROWS, // returns a block, or throws. Call the patch's nothrow form instead
    AGENT_ALLOCATES_AT,        // returns 0 if it stored a block at *argument[0]: posix_memalign
    AGENT_COPIES_TEXT, // returns a block with a copy of a text, or NULL. The text gives its size
    AGENT_RESIZES,     // returns a block instead of the old one, or NULL: the old one stays
    AGENT_RESIZES_OR_FREES, // returns a block instead of the old one, or NULL: the old one is free
    AGENT_RESIZES_IN_PLACE, // returns the usable size of the same block: xallocx
    AGENT_FREES,            // returns nothing
    AGENT_CHANGES_MODULES,  // _dl_debug_state: the loader has mapped or unmapped a module
    AGENT_EXECUTES,         // execve: the process becomes another program, or the call fails
    AGENT_CONFINES,         // prctl, syscall: may install a seccomp filter
    // Of libc, or instead of libc's: elsewhere functions of these names do other things.
    AGENT_MAPS,   // mmap and its kin: the program's own mappings
    AGENT_EXITS,  // _exit: the process ends
    AGENT_LIMITS, // setrlimit, prlimit: may limit the address space
};

#define AGENT_NONE 0xffu // no such argument

// X(kind, effect, index of the argument that is the size in bytes, of the one that multiplies
// it, of the one that is the block, or the path of a program). reallocarray, for example, has
// the block as argument 0, the count as 1 and the size as 2. A throwing operator's nothrow form
// has the same arguments, followed by a `const std::nothrow_t &`, which implementations ignore.
#define AGENT_HOOKS(X)                                                                 \
    X(AGENT_MALLOC, AGENT_ALLOCATES, 0, AGENT_NONE, AGENT_NONE)                        \
    X(AGENT_FREE, AGENT_FREES, AGENT_NONE, AGENT_NONE, 0)                              \
    X(AGENT_CALLOC, AGENT_ALLOCATES, 1, 0, AGENT_NONE)                                 \
    X(AGENT_REALLOC, AGENT_RESIZES, 1, AGENT_NONE, 0)                                  \
    X(AGENT_REALLOCARRAY, AGENT_RESIZES, 2, 1, 0)                                      \
    X(AGENT_REALLOCF, AGENT_RESIZES_OR_FREES, 1, AGENT_NONE, 0)                        \
    X(AGENT_ALIGNED_ALLOC, AGENT_ALLOCATES, 1, AGENT_NONE, AGENT_NONE)                 \
    X(AGENT_POSIX_MEMALIGN, AGENT_ALLOCATES_AT, 2, AGENT_NONE, AGENT_NONE)             \
    X(AGENT_STRDUP, AGENT_COPIES_TEXT, AGENT_NONE, AGENT_NONE, AGENT_NONE)             \
    X(AGENT_NEW, AGENT_ALLOCATES_OR_THROWS, 0, AGENT_NONE, AGENT_NONE)                 \
    X(AGENT_NEW_ALIGNED, AGENT_ALLOCATES_OR_THROWS, 0, AGENT_NONE, AGENT_NONE)         \
    X(AGENT_XALLOCX, AGENT_RESIZES_IN_PLACE, 1, AGENT_NONE, 0)                         \
    X(AGENT_HEAP_CALLOC, AGENT_ALLOCATES, 2, 1, AGENT_NONE)                            \
    X(AGENT_HEAP_REALLOC, AGENT_RESIZES, 2, AGENT_NONE, 1)                             \
    X(AGENT_HEAP_REALLOCARRAY, AGENT_RESIZES, 3, 2, 1)                                 \
    X(AGENT_DL_DEBUG_STATE, AGENT_CHANGES_MODULES, AGENT_NONE, AGENT_NONE, AGENT_NONE) \
    X(AGENT_EXECVE, AGENT_EXECUTES, AGENT_NONE, AGENT_NONE, 0)                         \
    X(AGENT_EXECVEAT, AGENT_EXECUTES, AGENT_NONE, AGENT_NONE, 1)                       \
    X(AGENT_FEXECVE, AGENT_EXECUTES, AGENT_NONE, AGENT_NONE, 0)                        \
    X(AGENT_PRCTL, AGENT_CONFINES, AGENT_NONE, AGENT_NONE, AGENT_NONE)                 \
    X(AGENT_SYSCALL, AGENT_CONFINES, AGENT_NONE, AGENT_NONE, AGENT_NONE)               \
    X(AGENT_MMAP, AGENT_MAPS, AGENT_NONE, AGENT_NONE, AGENT_NONE)                      \
    X(AGENT_MUNMAP, AGENT_MAPS, AGENT_NONE, AGENT_NONE, AGENT_NONE)                    \
    X(AGENT_MREMAP, AGENT_MAPS, AGENT_NONE, AGENT_NONE, AGENT_NONE)                    \
    X(AGENT_BRK, AGENT_MAPS, AGENT_NONE, AGENT_NONE, AGENT_NONE)                       \
    X(AGENT_SBRK, AGENT_MAPS, AGENT_NONE, AGENT_NONE, AGENT_NONE)                      \
    X(AGENT_EXIT, AGENT_EXITS, AGENT_NONE, AGENT_NONE, AGENT_NONE)                     \
    X(AGENT_SETRLIMIT, AGENT_LIMITS, AGENT_NONE, AGENT_NONE, AGENT_NONE)               \
    X(AGENT_PRLIMIT, AGENT_LIMITS, AGENT_NONE, AGENT_NONE, AGENT_NONE)

// The kinds are few, because functions with the same arguments share one: AGENT_MALLOC is also
// valloc, pvalloc, mallocx (size, flags) and operator new(size, nothrow) with or without an
// alignment; AGENT_ALIGNED_ALLOC is memalign; AGENT_REALLOC is rallocx (block, size, flags);
// AGENT_FREE is cfree, dallocx, sdallocx and every operator delete. Those of a heap have mimalloc's
// heap as their first argument: AGENT_ALIGNED_ALLOC is also (heap, size).
enum agent_hook {
#define X(kind, effect, size, count, block) kind,
    AGENT_HOOKS(X)
#undef X
    AGENT_HOOK_COUNT,
};

struct agent_hook_shape {
    uint8_t effect; // enum agent_effect
    uint8_t size_argument;
    uint8_t count_argument;
    uint8_t block_argument;
};

// Return the row of a kind.
static inline struct agent_hook_shape agent_hook_shape(enum agent_hook hook)
{
    static const struct agent_hook_shape shapes[AGENT_HOOK_COUNT] = {
#define X(kind, effect, size, count, block) [kind] = {effect, size, count, block},
        AGENT_HOOKS(X)
#undef X
    };
    return shapes[hook];
}

// Whether a function of that kind is an allocator's.
static inline bool agent_hook_is_allocators(enum agent_hook hook)
{
    return agent_hook_shape(hook).effect < AGENT_CHANGES_MODULES;
}

// Whether functions of that kind are libc's, or stand in for libc's.
static inline bool agent_hook_is_libcs(enum agent_hook hook)
{
    return agent_hook_shape(hook).effect >= AGENT_MAPS;
}
