// SPDX-License-Identifier: MIT
// operators: C++'s operator new and delete in all their forms.
//
// Most runtimes define them by malloc and free, whose hooks record them: then ours only jump to the
// next definition, and leave no frame; with --sample not even that, for a block that is not chosen
// (passing_operators.h). Allocators that bring their own operators (tcmalloc,
// jemalloc, mimalloc) bypass malloc: then ours record.
//
// A C program may load a C++ plugin whose runtime is visible to the plugin alone. The plugin's
// calls still reach our operators, which are global, and there is no next definition to find: then
// ours are malloc and free. Only when memory runs out they search for the plugin's runtime, among
// the modules that the plugin and its callers refer to, to throw its exception.
//
// No guard is held across the real functions, because they may throw through these frames. The
// unwinder then needs only the frames' unwind tables. This file is compiled with frame pointers,
// which unwind_caller_regs() reads. Context: T.
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/page_alloc.h"
#include "base/sys.h"
#include "pointer_address_arch.h"
#include "target/preload/exports/hooks.h"
#include "target/preload/exports/passing_operators.h"
#include "target/preload/process/process.h"
#include "target/preload/real/definitions.h"
#include "target/preload/real/real_functions.h"
#include "target/preload/record/record.h"
#include "target/unwind/unwind.h"

#define CATCHER_FRAMES 256u // how many frames are searched for a function that may catch

// Find `name` by the callers: the function that catches is on the stack, and its module refers to
// its runtime.
static uint64_t find_in_callers(const struct unwind_regs *caller, const char *name)
{
    const size_t bytes = unwind_thread_bytes(CATCHER_FRAMES, CATCHER_FRAMES);
    void *memory = sys_is_forbidden() ? NULL : page_alloc(bytes);
    if (memory == NULL) {
        return 0;
    }
    struct unwind_walk walk;
    unwind_thread_walk(unwind_thread_init(memory, CATCHER_FRAMES, CATCHER_FRAMES), caller, &walk);
    // A guessed frame may be in a module that is being unloaded.
    const bool are_known = (walk.flags & UNWIND_USED_FRAME_POINTER) == 0;
    uint64_t found = 0;
    for (uint32_t i = walk.count; are_known && found == 0 && i-- > 0;) {
        found = definition_for(walk.frames[i].pc - 1, name).address;
    }
    page_free(memory, bytes);
    return found;
}

// Find the operator `name` of the caller's C++ runtime; 0 if there is none.
static uint64_t find_runtime(const struct unwind_regs *caller, const char *name)
{
    const uint64_t own = definition_for(caller->pc - 1, name).address;
    return own != 0 ? own : find_in_callers(caller, name);
}

// Do operator new by malloc, without its failure.
static NOINLINE void *replace_new(const struct unwind_regs *caller, size_t size, size_t alignment)
{
    const size_t at_least = size == 0 ? 1 : size;
    void *block = NULL;
    if (alignment == 0) {
        block = g_real.malloc(at_least);
    } else if (g_real.posix_memalign(&block, alignment, at_least) != 0) {
        block = NULL;
    }
    if (block != NULL) {
        record_alloc(caller, block, size);
    }
    return block;
}

// Record the block of the allocator's own operator, unless the operator called malloc, as some do
// in part of their cases; then the block is recorded already.
static NOINLINE void *
record_unless_recorded(const struct unwind_regs *caller, void *block, size_t size)
{
    if (block != NULL && record_last_allocated() != arch_address_of(block)) {
        record_alloc(caller, block, size);
    }
    return block;
}

// Where the operator jumps to in a process that samples; NULL: to its next definition.
#define X(name, parameters, arguments, align, throws) \
    static void *(*const counts_##name)parameters = passing_##name;
PLAIN_NEW_OPERATORS(X)
#undef X
#define X(name, parameters, arguments, align, throws) \
    static void *(*const counts_##name)parameters = NULL;
ALIGNED_NEW_OPERATORS(X)
#undef X
#define X(name, parameters, arguments) \
    static void(*const counts_##name) parameters = passing_##name;
PLAIN_DELETE_OPERATORS(X)
#undef X
#define X(name, parameters, arguments) static void(*const counts_##name) parameters = NULL;
ALIGNED_DELETE_OPERATORS(X)
#undef X

// What is known about the session, once the process has joined it.
enum session_kind {
    SESSION_UNKNOWN = 0,
    SESSION_RECORDS, // every block
    SESSION_SAMPLES, // and the operators are plain
};

static enum session_kind session_kind(void)
{
    const struct session_header *session = process_session();
    if (session == NULL) {
        return SESSION_UNKNOWN;
    }
    return session->sample_bytes != 0 && g_real.operators_are_plain ? SESSION_SAMPLES
                                                                    : SESSION_RECORDS;
}

// Let an operator that has a next definition jump to where it goes from now on, if that is known.
#define SETTLE_JUMP(name)                                                             \
    do {                                                                              \
        const enum session_kind kind = session_kind();                                \
        if (kind == SESSION_SAMPLES && counts_##name != NULL) {                       \
            atomic_store_explicit(&jump_##name, counts_##name, memory_order_relaxed); \
        } else if (kind != SESSION_UNKNOWN) {                                         \
            atomic_store_explicit(&jump_##name, g_real.name, memory_order_relaxed);   \
        }                                                                             \
    } while (false)

// Each operator is three functions of one type, so that the first may jump, and leave no frame in
// the stacks that the next definition's malloc records; the others have the same caller. The second
// decides where the first jumps to; until it knows, it is called each time.
#define X(name, parameters, arguments, align, throws)                              \
    static NOINLINE void *new_##name parameters                                    \
    {                                                                              \
        const struct unwind_regs caller = unwind_caller_regs();                    \
        if (g_real.name != NULL) {                                                 \
            record_forget_last();                                                  \
            return record_unless_recorded(&caller, g_real.name arguments, size);   \
        }                                                                          \
        void *block = replace_new(&caller, size, align);                           \
        if (block == NULL) {                                                       \
            const uint64_t found = find_runtime(&caller, #name);                   \
            if (found != 0) {                                                      \
                void *(*next)parameters;                                           \
                memcpy(&next, &found, sizeof(found));                              \
                return next arguments;                                             \
            }                                                                      \
            if (throws) {                                                          \
                abort(); /* as after an uncaught exception */                      \
            }                                                                      \
        }                                                                          \
        return block;                                                              \
    }                                                                              \
                                                                                   \
    static void *choose_##name parameters;                                         \
    static void *(*_Atomic jump_##name)parameters = choose_##name;                 \
                                                                                   \
    static NOINLINE void *choose_##name parameters                                 \
    {                                                                              \
        if (g_real.operators != OPERATORS_FORWARD || g_real.name == NULL) {        \
            return new_##name arguments;                                           \
        }                                                                          \
        SETTLE_JUMP(name);                                                         \
        return g_real.name arguments;                                              \
    }                                                                              \
                                                                                   \
    EXPORT void *name parameters                                                   \
    {                                                                              \
        return atomic_load_explicit(&jump_##name, memory_order_relaxed) arguments; \
    }
NEW_OPERATORS(X)
#undef X

// What is known about one of the allocator's own operators delete.
enum delete_route {
    ROUTE_UNKNOWN = 0,
    ROUTE_FREE, // calls free, whose hook records
    ROUTE_OWN,  // does not call free
};

// Learn an operator's route from the first block that it frees. If the operator has its own, the
// free is counted after the fact. A thread that got the address meanwhile has ended the block's
// word and counted its free; then that thread's block counts as freed too early.
static void learn_route(_Atomic enum delete_route *route, void *block)
{
    const enum delete_route seen =
        record_last_freed() == arch_address_of(block) ? ROUTE_FREE : ROUTE_OWN;
    atomic_store_explicit(route, seen, memory_order_relaxed); // every thread learns the same
    if (seen == ROUTE_OWN) {
        record_free(block);
    }
}

#define X(name, parameters, arguments)                                                            \
    static NOINLINE void delete_##name parameters                                                 \
    {                                                                                             \
        static _Atomic enum delete_route route_known;                                             \
        const enum delete_route route = atomic_load_explicit(&route_known, memory_order_relaxed); \
        if (g_real.name == NULL) {                                                                \
            release_block(block);                                                                 \
        } else if (block == NULL || route == ROUTE_FREE) {                                        \
            g_real.name arguments;                                                                \
        } else if (route == ROUTE_OWN) {                                                          \
            record_free(block);                                                                   \
            g_real.name arguments;                                                                \
        } else {                                                                                  \
            record_forget_last();                                                                 \
            g_real.name arguments;                                                                \
            learn_route(&route_known, block);                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static void choose_##name parameters;                                                         \
    static void(*_Atomic jump_##name) parameters = choose_##name;                                 \
                                                                                                  \
    static NOINLINE void choose_##name parameters                                                 \
    {                                                                                             \
        if (g_real.operators != OPERATORS_FORWARD || g_real.name == NULL) {                       \
            delete_##name arguments;                                                              \
            return;                                                                               \
        }                                                                                         \
        SETTLE_JUMP(name);                                                                        \
        g_real.name arguments;                                                                    \
    }                                                                                             \
                                                                                                  \
    EXPORT void name parameters                                                                   \
    {                                                                                             \
        atomic_load_explicit(&jump_##name, memory_order_relaxed) arguments;                       \
    }
DELETE_OPERATORS(X)
#undef X
