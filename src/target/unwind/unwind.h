// SPDX-License-Identifier: MIT
// unwind: the call stack of the running thread, as a list of return addresses with names.
//
// How: .eh_frame is compiled on demand, one return address at a time, into a compact rule that a
// process-wide cache keeps (rule.h, rule_cache.h). Each thread remembers its last walk. A new walk
// steps outwards only until it meets a walk_cache frame and then reads back the memory that the
// rest of the old walk depended on; if nothing changed there, the rest is proved equal
// (docs/design/unwinding.md has the proof). Nothing is patched and nothing is registered.
//
//   hook -> unwind_caller_regs() -> unwind_thread_walk(thread, regs, &walk) -> walk.name, frames
//
// Names: frame i is named stack_name(name of frame i - 1, pc of frame i), outermost first, root 0.
// Every pc is looked up at pc - 1: return addresses are given as they are, and a pc that is not one
// (of a frame that was interrupted by a signal, or put at the end of a stack by hand) plus 1. In a
// stack of more than max_frames frames the middle is replaced by one frame whose pc is
// WIRE_FRAME_CUT.
//
// Owns: the rule cache, one for the process, never freed. The memory of a `struct unwind_thread` is
// the caller's. Context: T, any thread, signal handlers included, as long as no two walks use the
// same unwind_thread at once: a handler that interrupts a walk takes an unwind_thread of its own.
// errno is kept; no locks, no malloc; no system call but when a stack goes deeper than ever before
// or leaves the thread's own stack.
// Failure: a walk always yields the frames that it could prove; what went wrong is in the flags.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "caller_arch.h"
#include "target/unwind/cfi/eh_frame.h"

#define UNWIND_FRAMES_MAX (1u << 20) // a walk that is longer ends as unfinished
#define UNWIND_SAME       UINT32_MAX

// One frame of a result. Its name is that of the stack that ends with it.
struct unwind_frame {
    uint64_t pc;
    uint64_t name;
};

enum unwind_flags {
    UNWIND_UNFINISHED = 1 << 0,         // did not reach the thread's entry
    UNWIND_USED_FRAME_POINTER = 1 << 1, // some frame had no table: its frame pointer was followed
    UNWIND_FOREIGN_STACK = 1 << 2,      // not (only) the thread's own stack: coroutine, sigaltstack
    UNWIND_CUT = 1 << 3,                // deeper than max_frames: contains WIRE_FRAME_CUT
    UNWIND_NOT_REMEMBERED = 1 << 4,     // changed_from is 0 and the next walk will not relate to it
};

// The result of a walk, valid until the next walk with the same unwind_thread.
struct unwind_walk {
    const struct unwind_frame *frames; // outermost first; owned by the unwind_thread
    uint32_t count;                    // at most max_frames; 0 only if the first pc is nonsense
    // Frames before this index are those of the last walk without UNWIND_NOT_REMEMBERED, at the
    // same index, with the same pc and name.
    uint32_t changed_from;
    uint32_t flags; // enum unwind_flags
    uint64_t name;  // of the innermost frame: the name of the stack; 0 if count is 0
};

// Remembers the last walk of one thread. Opaque; lives in memory of the caller's.
struct unwind_thread;

// Bytes for a thread that remembers stacks of up to `capacity` frames and keeps at most
// `max_frames` frames of a stack (8 <= max_frames <= capacity <= UNWIND_FRAMES_MAX). About 130
// bytes a frame of capacity plus 40 a frame of max_frames; only what is used is touched. Deeper
// stacks than `capacity` are walked in full each time, unless unwind_thread_grow_to() was called.
size_t unwind_thread_bytes(uint32_t capacity, uint32_t max_frames);

// Prepares zeroed or used `memory` (8-byte aligned) for the calling thread. Cheap: nothing is
// learned about the stack before the first walk. To be called again when another thread takes the
// memory over. The result is `memory` itself.
struct unwind_thread *unwind_thread_init(void *memory, uint32_t capacity, uint32_t max_frames);

// No walk of this thread may make a system call any more (sys_forbid): learns of its stack now what
// can be learned ahead.
void unwind_thread_foresee(struct unwind_thread *thread);

// Allows deeper stacks to be walk_cache in memory of the thread's own, of which more is mapped,
// four times as much each time, when a stack is deeper than ever before: at most `capacity_max`
// frames (UNWIND_FRAMES_MAX), and 256 MiB in all threads together. The stack itself takes 16 bytes
// a frame at least. Then unwind_thread_release() is to be called at the end.
void unwind_thread_grow_to(struct unwind_thread *thread, uint32_t capacity_max);

// Gives back what was mapped. No walk may follow.
void unwind_thread_release(struct unwind_thread *thread);

// Walks the calling thread's stack, beginning with the frame that `start` describes.
void unwind_thread_walk(struct unwind_thread *thread,
                        const struct unwind_regs *start,
                        struct unwind_walk *walk);

// The name of the stack that begins with `start`, if no more than its innermost few frames differ
// from the one that was walked last; 0 if more do, or that cannot be proved by known rules: then
// walk. What is walk_cache of that walk stays as it is.
uint64_t unwind_thread_again(struct unwind_thread *thread, const struct unwind_regs *start);

// Walks again from `start` without looking at anything walk_cache, and compares with `walk`, which
// unwind_thread_walk() just returned for the same start. Returns the index of the first frame that
// differs (or that only one of the walks has), or UNWIND_SAME. `walk` stays valid.
uint32_t unwind_thread_check(struct unwind_thread *thread,
                             const struct unwind_regs *start,
                             const struct unwind_walk *walk);

// Tells the unwinder that code was unloaded (dlclose): cached rules and walk_cache walks are void.
// To be called after the unmapping, by any thread. Costs a sweep over the cache.
void unwind_flush(void);

// Tells the unwinder that code was loaded: to be called at the start, by the initial thread if
// possible; never from a hook. Where libc has no _dl_find_object (glibc before 2.35) it lists the
// modules, under the loader's lock. Flushes if code outside of all modules (JIT) was met, for the
// new may lie there.
void unwind_modules_refresh(void);

// Tells the unwinder that all modules that are loaded now stay loaded: to be called before the
// first dlopen, by the loader's rules for locks as unwind_modules_refresh(). Further calls change
// nothing. Pcs in other modules that are but guesses cost system calls, and tell nothing under a
// filter.
void unwind_modules_stay(void);

// The module that holds a pc.
struct unwind_module {
    uint64_t start;        // of its mapping
    uint64_t end;          // exclusive
    uint64_t bias;         // runtime address - address in the file
    const char *path;      // as the loader knows it; "" for the main program. Owned by the loader.
    struct bytes build_id; // in the mapped image; empty if it has none
    struct eh_table copy;  // path and build-id point into its memory if pc was a guess
};

// Finds the module of `pc` without locks. False if the pc is in no module (JIT code, for one).
// What `out` points to lives as long as the module stays loaded.
bool unwind_find_module(uint64_t pc, struct unwind_module *out);

// As unwind_find_module, for any pc of a walk with UNWIND_USED_FRAME_POINTER: the module may be
// closed while it is looked at. What `out` points to lives until unwind_module_release().
bool unwind_find_guessed_module(uint64_t pc, struct unwind_module *out);
void unwind_module_release(const struct unwind_module *module);
