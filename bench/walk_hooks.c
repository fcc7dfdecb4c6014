// SPDX-License-Identifier: MIT
// walk_hooks: hooks of malloc and free that only walk the stack, to preload: the least that cairn's
// hooks cost if all that follows the walk were free, and so were the recorder.
//
// An allocation walks by the code of the preload library and as that does (record_hot.h): the last
// stack again, else a few steps or a path, else a walk that is remembered. As there, the kind of
// the walk depends on whether the stack is known; here a table of names says so, as large as a
// lane's largest stack_dictionary. Nothing is written elsewhere. A free does nothing.
//
// Left out, because they are rare: the aligned allocators, and allocations of signal handlers that
// interrupt a hook; these do not walk. A thread's memory is not given back.
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/page_alloc.h"
#include "next_allocator.h"
#include "target/unwind/unwind.h"
#include "target/unwind/walk/fast_path.h"

#define FRAMES_MAX 1024u  // remembered of a walk: thread_state.c's
#define NAMES_MAX  16384u // likewise

struct walker {
    uint64_t *names; // NAMES_MAX of known stacks; 0: none
    struct unwind_thread *unwind;
    uint32_t put_count;
    bool is_walking;
};

static __thread struct walker g_walker;

static int (*g_dlclose)(void *handle);

__attribute__((constructor)) static void start(void)
{
    find_allocator();
    find_next(&g_dlclose, "dlclose");
    unwind_modules_stay();
    unwind_modules_refresh();
}

static bool begin_thread(struct walker *w)
{
    const size_t names_bytes = NAMES_MAX * sizeof(w->names[0]);
    uint8_t *memory = page_alloc(names_bytes + unwind_thread_bytes(FRAMES_MAX, FRAMES_MAX));
    if (memory == NULL) {
        return false;
    }
    w->names = (uint64_t *)(void *)memory;
    w->unwind = unwind_thread_init(memory + names_bytes, FRAMES_MAX, FRAMES_MAX);
    unwind_thread_grow_to(w->unwind, UNWIND_FRAMES_MAX);
    return true;
}

// A stack has one of two places, as in stack_dictionary.h.
ALWAYS_INLINE uint64_t *first_place(const struct walker *w, uint64_t name)
{
    return &w->names[name % NAMES_MAX];
}

ALWAYS_INLINE uint64_t *second_place(const struct walker *w, uint64_t name)
{
    return &w->names[(name >> 32) % NAMES_MAX];
}

ALWAYS_INLINE bool has(const struct walker *w, uint64_t name)
{
    return name != 0 && (LIKELY(*first_place(w, name) == name) || *second_place(w, name) == name);
}

static void put(struct walker *w, uint64_t name)
{
    uint64_t *first = first_place(w, name);
    uint64_t *second = second_place(w, name);
    const bool is_second_wanted = *second == 0 || w->put_count++ % 2 != 0;
    *(*first != 0 && is_second_wanted ? second : first) = name;
}

// A handler that allocates meanwhile does not walk.
ALWAYS_INLINE void set_walking(struct walker *w, bool is_walking)
{
    atomic_signal_fence(memory_order_seq_cst);
    w->is_walking = is_walking;
    atomic_signal_fence(memory_order_seq_cst);
}

static NOINLINE void walk_on(struct walker *w, uint64_t pc, uint64_t sp, uint64_t fp)
{
    const struct unwind_regs caller = {.pc = pc, .sp = sp, .fp = fp};
    if (!has(w, unwind_again_by_steps(w->unwind, &caller))) {
        struct unwind_walk walk;
        unwind_thread_walk(w->unwind, &caller, &walk);
        if (!has(w, walk.name)) {
            put(w, walk.name);
        }
    }
    set_walking(w, false);
}

// A thread that gets no memory never walks.
static NOINLINE void walk_first(struct walker *w, uint64_t pc, uint64_t sp, uint64_t fp)
{
    set_walking(w, true);
    if (begin_thread(w)) {
        walk_on(w, pc, sp, fp);
    }
}

// Walk from the caller of the hook that this is inlined into.
ALWAYS_INLINE void walk_caller(void)
{
    struct walker *w = &g_walker;
    const struct unwind_regs caller = unwind_caller_regs();
    if (UNLIKELY(w->is_walking)) {
        return;
    }
    if (UNLIKELY(w->unwind == NULL)) {
        walk_first(w, caller.pc, caller.sp, caller.fp);
        return;
    }
    set_walking(w, true);
    if (has(w, unwind_same(w->unwind, &caller))) {
        set_walking(w, false);
    } else {
        walk_on(w, caller.pc, caller.sp, caller.fp);
    }
}

void *malloc(size_t size)
{
    void *block = g_malloc(size);
    walk_caller();
    return block;
}

void *calloc(size_t count, size_t size)
{
    void *block = g_calloc(count, size);
    walk_caller();
    return block;
}

void *realloc(void *block, size_t size)
{
    void *moved = g_realloc(block, size);
    walk_caller();
    return moved;
}

void free(void *block)
{
    g_free(block);
}

int dlclose(void *handle)
{
    const int result = g_dlclose(handle);
    unwind_flush();
    return result;
}
