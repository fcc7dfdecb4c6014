// SPDX-License-Identifier: MIT
/* cairn.h: what a program can tell the heap profiler that records it.
 *
 *   cairn_report_alloc(block, size)             a custom allocator or pool handed out a block
 *   cairn_report_realloc(old, block, size)      it moved or resized one
 *   cairn_report_free(block)                    it takes one back
 *   cairn_mark("loaded 3 files")                a moment, shown on the time line
 *   cairn_phase("indexing")                     from here to the next phase the program does this
 *   cairn_is_recording()                        whether anybody listens
 *
 * Header only, for C99 and C++11 with gcc or clang: nothing to link, nothing to install where the
 * program runs. Without a recorder each call is one load and a branch that is not taken. It works
 * in executables and shared libraries, from static libraries too, and in libraries that are loaded
 * later; in a fully static executable, which cairn cannot record, the calls do nothing.
 *
 * Blocks of a pool are blocks of their own: they may lie inside of a block from malloc, even at its
 * very address. If the pool's memory comes from malloc too, both count; from mmap, only the blocks
 * do.
 *
 * Any thread may call these, in any order, signal handlers included (a mark made by a handler that
 * interrupts an allocation is lost). They keep errno, take no lock and allocate nothing. */
#ifndef CAIRN_H
#define CAIRN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The recorder's side. Found by name: the object cairn_api_v1, which the library that cairn loads
 * into the program exports. Later versions only add members; `bytes` is the size of what there is.
 */
struct cairn_api {
    uint32_t version; /* 1 */
    uint32_t bytes;
    void (*report_alloc)(const void *block, size_t size_bytes);
    void (*report_realloc)(const void *old_block, const void *block, size_t size_bytes);
    void (*report_free)(const void *block);
    void (*mark)(const char *text, uint32_t kind);
};

enum cairn_mark_kind {
    CAIRN_MARK_MOMENT = 0,
    CAIRN_MARK_PHASE = 3
};

/* cairn itself defines CAIRN_RECORDER_SIDE: it needs only what is above. */
#ifndef CAIRN_RECORDER_SIDE

/* One for each executable or library, whatever the number of files that include this: NULL if
 * nobody records. Set before main, or before dlopen returns. */
__attribute__((weak, visibility("hidden"))) const struct cairn_api *cairn_api_here;

/* Weak, since an old libc has it in a library of its own, and a static one must not link it. */
extern void *cairn_dlsym(void *handle, const char *name) __asm__("dlsym") __attribute__((weak));

__attribute__((constructor(102), used)) static void cairn_api_look_up(void)
{
    if (cairn_dlsym != 0 && cairn_api_here == 0) {
        /* The handle is RTLD_DEFAULT. */
        cairn_api_here = (const struct cairn_api *)cairn_dlsym((void *)0, "cairn_api_v1");
    }
}

/* Inlined in debug builds too: a recorded stack begins with the allocator's own frame. */
# define CAIRN_INLINE static inline __attribute__((always_inline))

CAIRN_INLINE int cairn_is_recording(void)
{
    return cairn_api_here != 0;
}

/* `block` of `size_bytes` is in use from now on. NULL is ignored. */
CAIRN_INLINE void cairn_report_alloc(const void *block, size_t size_bytes)
{
    if (__builtin_expect(cairn_api_here != 0, 0)) {
        cairn_api_here->report_alloc(block, size_bytes);
    }
}

/* `old_block` became `block`, which may be the same; counts as an allocation and a free. */
CAIRN_INLINE void cairn_report_realloc(const void *old_block, const void *block, size_t size_bytes)
{
    if (__builtin_expect(cairn_api_here != 0, 0)) {
        cairn_api_here->report_realloc(old_block, block, size_bytes);
    }
}

/* `block` is about to be taken back: call it before somebody else can be given the block. */
CAIRN_INLINE void cairn_report_free(const void *block)
{
    if (__builtin_expect(cairn_api_here != 0, 0)) {
        cairn_api_here->report_free(block);
    }
}

/* Text in UTF-8, copied; of more than 1024 bytes the rest is cut. */
CAIRN_INLINE void cairn_mark(const char *text)
{
    if (__builtin_expect(cairn_api_here != 0, 0)) {
        cairn_api_here->mark(text, CAIRN_MARK_MOMENT);
    }
}

CAIRN_INLINE void cairn_phase(const char *name)
{
    if (__builtin_expect(cairn_api_here != 0, 0)) {
        cairn_api_here->mark(name, CAIRN_MARK_PHASE);
    }
}

#endif /* CAIRN_RECORDER_SIDE */

#ifdef __cplusplus
}
#endif

/* Define CAIRN_HEAPTRACK_NAMES to keep code that was written for heaptrack_api.h. */
#ifdef CAIRN_HEAPTRACK_NAMES
# define heaptrack_report_alloc(block, size) cairn_report_alloc(block, size)
# define heaptrack_report_realloc(old_block, size, block) \
  cairn_report_realloc(old_block, block, size)
# define heaptrack_report_free(block) cairn_report_free(block)
#endif

#endif
