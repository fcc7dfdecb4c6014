// SPDX-License-Identifier: MIT
// unwind: the call stack of the running thread, as a list of return addresses with names.
//
// How: .eh_frame is compiled on demand, one return address at a time, into a compact rule that a
// process-wide cache keeps (rule.h, rule_cache.h). Each thread remembers its last walk. A new walk
// steps outwards only until it meets a remembered frame. Then it reads back the memory that the
// rest of the old walk depended on; if that is unchanged, the rest is proved equal
// (docs/design/unwinding.md has the proof). The unwinder patches and registers nothing.
//
//   hook -> unwind_caller_regs() -> unwind_thread_walk(thread, regs, &walk) -> walk.name, frames
//
// Names: frame i is named stack_name(name of frame i - 1, pc of frame i), outermost first, root 0.
// Every pc is looked up at pc - 1. Return addresses are given unchanged. A pc that is not a return
// address (of a frame that a signal interrupted, or that was put at the end of a stack by hand) is
// given plus 1. In a stack of more than max_frames frames one frame whose pc is WIRE_FRAME_CUT
// replaces the middle.
//
// Owns: the rule cache, one for the process, never freed. The caller owns the memory of a `struct
// unwind_thread`. Context: T, any thread, signal handlers included, if no two walks use the same
// unwind_thread at once: a handler that interrupts a walk uses its own unwind_thread. errno is
// kept; no locks, no malloc; no system call except when a stack is deeper than ever before or
// leaves the thread's own stack. Failure: a walk always yields the frames that it could prove; the
// flags describe what went wrong.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "caller_arch.h"
#include "target/unwind/cfi/eh_frame.h"

#define UNWIND_FRAMES_MAX (1u << 20) // a longer walk ends as unfinished
#define UNWIND_SAME       UINT32_MAX

// One frame of a result. `name` names the stack that ends with this frame.
struct unwind_frame {
    uint64_t pc;
    uint64_t name;
};

enum unwind_flags {
    UNWIND_UNFINISHED = 1 << 0,         // did not reach the thread's entry
    UNWIND_USED_FRAME_POINTER = 1 << 1, // a frame without a table: its frame pointer was followed
    UNWIND_FOREIGN_STACK = 1 << 2,      // not (only) the thread's own stack: coroutine, sigaltstack
    UNWIND_CUT = 1 << 3,                // deeper than max_frames: contains WIRE_FRAME_CUT
    UNWIND_NOT_REMEMBERED = 1 << 4,     // changed_from is 0; the next walk does not relate to it
};

// The result of a walk, valid until the next walk with the same unwind_thread.
struct unwind_walk {
    const struct unwind_frame *frames; // outermost first; owned by the unwind_thread
    uint32_t count;                    // at most max_frames; 0 only if the first pc is invalid
    // Frames before this index are equal in index, pc and name to the frames of the last walk
    // without UNWIND_NOT_REMEMBERED.
    uint32_t changed_from;
    uint32_t flags; // enum unwind_flags
    uint64_t name;  // name of the innermost frame and so of the stack; 0 if count is 0
};

// Remembers the last walk of one thread. Opaque; in memory of the caller.
struct unwind_thread;

// Return the size in bytes for a thread that remembers stacks of up to `capacity` frames and keeps
// at most `max_frames` frames of a stack (8 <= max_frames <= capacity <= UNWIND_FRAMES_MAX). About
// 130 bytes a frame of capacity plus 40 a frame of max_frames; only used pages are touched. Stacks
// deeper than `capacity` are walked in full each time, unless unwind_thread_grow_to() was called.
size_t unwind_thread_bytes(uint32_t capacity, uint32_t max_frames);

// Prepare zeroed or used `memory` (8-byte aligned) for the calling thread. Cheap: the stack is not
// examined before the first walk. Call this again when another thread takes the memory over.
// Returns `memory` itself.
struct unwind_thread *unwind_thread_init(void *memory, uint32_t capacity, uint32_t max_frames);

// Learn ahead what can be learned about the thread's stack: no further walk may make a system call
// (sys_forbid).
void unwind_thread_foresee(struct unwind_thread *thread);

// Allow deeper stacks to be remembered in memory of the thread's own. The thread maps more of it,
// four times as much each time, when a stack is deeper than ever before: at most `capacity_max`
// frames (UNWIND_FRAMES_MAX), and 256 MiB in all threads together. The stack itself takes at least
// 16 bytes a frame. Call unwind_thread_release() at the end.
void unwind_thread_grow_to(struct unwind_thread *thread, uint32_t capacity_max);

// Give back the mapped memory. No walk may follow.
void unwind_thread_release(struct unwind_thread *thread);

// Walk the calling thread's stack, beginning with the frame that `start` describes.
void unwind_thread_walk(struct unwind_thread *thread,
                        const struct unwind_regs *start,
                        struct unwind_walk *walk);

// Return the name of the stack that begins with `start`, if only its innermost few frames differ
// from the last walk; 0 if more frames differ, or if known rules cannot prove it: then walk. The
// remembered walk does not change.
uint64_t unwind_thread_again(struct unwind_thread *thread, const struct unwind_regs *start);

// Walk again from `start` without the remembered walk, and compare with `walk`, the result of
// unwind_thread_walk() for the same start. Returns the index of the first frame that differs (or
// that only one of the walks has), or UNWIND_SAME. `walk` stays valid.
uint32_t unwind_thread_check(struct unwind_thread *thread,
                             const struct unwind_regs *start,
                             const struct unwind_walk *walk);

// A frame of an interpreted language.
struct unwind_insert {
    uint64_t pc;
    uint64_t place; // an address in the native frame that interprets it
};

// All that are on the stack now, outermost first.
struct unwind_inserts {
    const struct unwind_insert *items;
    uint32_t count;
    uint32_t same; // the first `same` of them are the first ones of the thread's last mix
};

// Replace native frames of `walk`, the thread's last one, by `inserts`: each native frame that has
// places of inserts in it is replaced by these. One whose place is in no native frame is left out.
// A walk that was not remembered does not change, because the places of its frames are not known.
// `walk` then is valid until the thread's next walk. Costs what has changed since the last mix.
void unwind_thread_mix(struct unwind_thread *thread,
                       struct unwind_walk *walk,
                       const struct unwind_inserts *inserts);

// Return the name of the thread's last mixed stack if a mix now would give it again, because the
// stack that begins with `start` is that of the last walk, and its inserts are the same; else 0.
uint64_t unwind_thread_mixed_again(const struct unwind_thread *thread,
                                   const struct unwind_regs *start,
                                   const struct unwind_inserts *inserts);

// Void cached rules and remembered walks, because code was unloaded (dlclose). Any thread may call
// this, after the unmapping. Costs a sweep over the cache.
void unwind_flush(void);

// Learn of loaded code. Call this at the start, if possible by the initial thread, and after
// loading, but never from a hook. Where libc has no _dl_find_object (glibc before 2.35) this lists
// the modules, under the loader's lock. Flushes if a walk met code outside of all modules (JIT),
// because a new module may be at that place.
void unwind_modules_refresh(void);

// Note that all modules that are loaded now stay loaded. Call this before the first dlopen, by the
// loader's lock rules of unwind_modules_refresh(). Further calls change nothing. Guessed pcs in
// other modules cost system calls, and yield nothing under a filter.
void unwind_modules_stay(void);

// The module that contains a pc.
struct unwind_module {
    uint64_t start;        // of its mapping
    uint64_t end;          // exclusive
    uint64_t bias;         // runtime address - address in the file
    const char *path;      // from the loader, which owns it; "" for the main program
    struct bytes build_id; // in the mapped image; empty if it has none
    struct eh_table copy;  // owns the memory of path and build_id if pc was a guess
};

// Find the module of `pc` without locks. False if the pc is in no module (JIT code, for example).
// The pointers in `out` are valid as long as the module stays loaded.
bool unwind_find_module(uint64_t pc, struct unwind_module *out);

// Find the module of any pc of a walk with UNWIND_USED_FRAME_POINTER: the module may be closed
// meanwhile. The pointers in `out` are valid until unwind_module_release().
bool unwind_find_guessed_module(uint64_t pc, struct unwind_module *out);
void unwind_module_release(const struct unwind_module *module);
