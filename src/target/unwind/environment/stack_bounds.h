// SPDX-License-Identifier: MIT
// stack_bounds: which addresses are surely the calling thread's own stack.
//
// [low, top) stays mapped and readable for as long as the thread lives, so a walk may read there
// without asking. It is learned without pthread_getattr_np (which locks, allocates and reads
// /proc): the top is either __libc_stack_end (the main thread) or pthread_self() (glibc puts the
// thread's descriptor at the top of its stack, but for the initial thread, whose descriptor lies
// anywhere; a fork's main thread may be on either kind). A candidate
// is believed only after a checked walk from the current sp has ended close below it, and after
// every page in between was seen to be readable: so nothing but the stack itself is ever touched,
// and a coroutine's stack is not mistaken for it. When the stack grows deeper, the new pages are
// checked one by one and `low` follows.
// Invariant: low <= top; low == top means that nothing is known. Context: T, the thread itself;
// system calls only when something new is to be learned.
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

// To be called once, at the start, by the initial thread if possible: notes its descriptor, which
// is not at the top of a stack. Other threads' calls are ignored.
void stack_bounds_note_main_thread(void);

// Tries to extend known bounds down to `sp`, which lies a little below them. False if `sp` lies
// elsewhere.
bool stack_bounds_extend(struct stack_bounds *bounds, uint64_t sp);

// Tries to learn the bounds from a walk that began at `sp` and whose last frame is at `last_sp`,
// with ever rising stack pointers in between. False if this was not the thread's own stack.
bool stack_bounds_learn(struct stack_bounds *bounds, uint64_t sp, uint64_t last_sp);

// Extends known bounds as far down as pages can be read, up to a MiB: afterwards nobody may ask.
void stack_bounds_foresee(struct stack_bounds *bounds);
