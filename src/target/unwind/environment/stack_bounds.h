// SPDX-License-Identifier: MIT
// stack_bounds: the addresses that certainly belong to the calling thread's own stack.
//
// [low, top) stays mapped and readable as long as the thread lives, so a walk may read there
// without a check. The bounds are learned without pthread_getattr_np (which locks, allocates and
// reads /proc). The top is either __libc_stack_end (the main thread) or pthread_self(): glibc puts
// a thread's descriptor at the top of its stack. The initial thread is an exception, because its
// descriptor can be anywhere; a fork's main thread may be on either kind. A candidate is accepted
// only after a checked walk from the current sp has ended close below it, and after every page in
// between proved readable. So only the stack itself is ever touched, and a coroutine's stack is not
// mistaken for it. When the stack grows deeper, the new pages are checked one by one and `low`
// follows. Invariant: low <= top; low == top means that nothing is known. Context: T, the thread
// itself; system calls only to learn something new.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct stack_bounds {
    uint64_t low; // a multiple of the page size, or equal to top
    uint64_t top; // exclusive
};

ALWAYS_INLINE bool stack_bounds_hold(const struct stack_bounds *bounds, uint64_t sp)
{
    return sp >= bounds->low && sp < bounds->top;
}

// Note the initial thread's descriptor, which is not at the top of a stack. Call this once, at the
// start, if possible in the initial thread. Calls of other threads are ignored.
void stack_bounds_note_main_thread(void);

// Try to extend known bounds down to `sp`, which is a little below them. False if `sp` is
// elsewhere.
bool stack_bounds_extend(struct stack_bounds *bounds, uint64_t sp);

// Try to learn the bounds from a walk that began at `sp` and whose last frame is at `last_sp`, with
// strictly rising stack pointers in between. False if this was not the thread's own stack.
bool stack_bounds_learn(struct stack_bounds *bounds, uint64_t sp, uint64_t last_sp);

// Extend known bounds down over readable pages, up to a MiB: later checks are not allowed.
void stack_bounds_foresee(struct stack_bounds *bounds);
