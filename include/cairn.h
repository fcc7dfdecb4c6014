// SPDX-License-Identifier: MIT
/* cairn.h: lets a program inform the heap profiler that records it, and query it.
 *
 *   cairn_report_alloc(block, size)             a custom allocator handed out a block
 *   cairn_report_realloc(old, block, size)      it moved or resized a block
 *   cairn_report_free(block)                    it takes a block back
 *   cairn_pool_alloc("nodes", block, size)      the first two for a pool with a name,
 *   cairn_pool_realloc("nodes", old, block, size)  which each stack then begins with
 *   cairn_event("bytes sent", 512)              an event of weight 512 happened
 *   cairn_mark("loaded 3 files")                a moment, shown on the time line
 *   cairn_phase("indexing")                     the phase of the program from here to the next one
 *   cairn_is_recording()                        whether cairn records this program
 *   cairn_stats(CAIRN_PROCESS, &stats)          the allocations and frees so far
 *   cairn_scope_begin, cairn_scope_end          ... and between two points
 *   cairn_peak_begin, cairn_peak_end            how much a thread held at most between them
 *   CAIRN_ASSERT_AT_MOST(allocations, 2, parse(line));    for tests
 *   CAIRN_ASSERT_PEAK_AT_MOST(1 << 20, parse(file));
 *
 * This header needs C99 or C++11, with gcc or clang. It needs no library, neither for linking nor
 * where the program runs. Without a recorder each call is one load and a branch that is not taken.
 * The calls work in executables, in shared libraries, in static libraries, in libraries that are
 * loaded later, in static executables, and in a program that cairn attaches to.
 *
 * A block of a pool counts as a block of its own. It may overlap a block from malloc, and even have
 * the same address. If the pool's memory comes from malloc, both blocks count. If it comes from
 * mmap, only the pool's blocks count.
 *
 * Any thread may make these calls, in any order. Signal handlers may make them too, but if a
 * handler interrupts an allocation, its marks and events are lost, its pool blocks lose the pool's
 * name, and its queries fail. The calls keep errno, take no lock, allocate nothing and report no
 * error. Only queries wait, and only for the recorder: see cairn_stats. */
#ifndef CAIRN_H
#define CAIRN_H

/* A program's warning options concern the program, not this header. */
#ifndef CAIRN_SHOW_WARNINGS
#    pragma GCC system_header
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cairn_mark_kind {
    CAIRN_MARK_MOMENT = 0,
    CAIRN_MARK_PHASE = 3
};

/* Selects the allocations to count. */
enum cairn_whose {
    CAIRN_PROCESS = 0,
    CAIRN_THREAD = 1 /* the calling thread */
};

/* Sums since the process or the thread began, or over a scope. Blocks of pools are included. The
 * live sums are allocations less frees; over a scope they are the change, and negative if the scope
 * freed more. A free counts for the thread that allocated the block, whichever thread frees it. */
struct cairn_stats {
    uint64_t allocations;     /* successful ones; a realloc is one allocation and one free */
    uint64_t allocated_bytes; /* as requested */
    uint64_t frees;           /* of recorded blocks */
    uint64_t freed_bytes;
    uint64_t temporary; /* allocations that the thread freed with its very next event */
    int64_t live_blocks;
    int64_t live_bytes;
};

/* A piece of the calling thread's work whose peak cairn measures. The members are private. */
struct cairn_peak {
    uint32_t scope; /* 0: none */
    uint32_t reserved;
};

/* The recorder's functions: the object cairn_api_v1, which cairn's library exports in the program.
 * The program finds it by name, or cairn sets the pointer below. Later versions only add members;
 * `bytes` is the size of the members that exist. */
struct cairn_api {
    uint32_t version; /* 1 */
    uint32_t bytes;
    void (*report_alloc)(const void *block, size_t size_bytes);
    void (*report_realloc)(const void *old_block, const void *block, size_t size_bytes);
    void (*report_free)(const void *block);
    void (*mark)(const char *text, uint32_t kind);
    void (*pool_alloc)(const char *pool, const void *block, size_t size_bytes);
    void (*pool_realloc)(const char *pool,
                         const void *old_block,
                         const void *block,
                         size_t size_bytes);
    void (*event)(const char *name, uint64_t weight);
    /* Fills `stats` and returns 1, or returns 0. */
    int (*stats)(uint32_t whose, struct cairn_stats *stats);
    int (*peak_begin)(struct cairn_peak *peak); /* 1 or 0 */
    int (*peak_end)(struct cairn_peak *peak, uint64_t *bytes);
};

/* cairn itself defines CAIRN_RECORDER_SIDE: it needs only the part above. */
#ifndef CAIRN_RECORDER_SIDE

/* One variable for each executable or library, however many of its files include this header. NULL
 * without a recorder. Set before main or before dlopen returns. If cairn attaches, it sets the
 * variable, which it finds by the note below, and resets it when it detaches. */
__attribute__((weak, used, visibility("hidden"))) const struct cairn_api *cairn_api_here;

/* An ELF note: owner "cairn", type 1, the distance from here to cairn_api_here. */
__asm__(".pushsection .note.cairn, \"a\", %note\n"
        ".balign 4\n"
        ".long 6, 8, 1\n"
        ".asciz \"cairn\"\n"
        ".balign 4\n"
        ".quad cairn_api_here - .\n"
        ".popsection\n");

/* Weak: an old libc has dlsym in a separate library, and a static libc must not link it. */
extern void *cairn_dlsym(void *handle, const char *name) __asm__("dlsym") __attribute__((weak));

__attribute__((constructor(102), used)) static void cairn_api_look_up(void)
{
    if (cairn_dlsym != 0 && cairn_api_here == 0) {
        /* The handle is RTLD_DEFAULT. */
        cairn_api_here = (const struct cairn_api *)cairn_dlsym((void *)0, "cairn_api_v1");
    }
}

/* Inlined in debug builds too, so that a recorded stack begins with the allocator's own frame. */
#    define CAIRN_INLINE static inline __attribute__((always_inline))

/* The table if it exists and has `member`: an older cairn may record a newer program. */
#    define CAIRN_API(member) \
        cairn_api_with(offsetof(struct cairn_api, member) + sizeof(void (*)(void)))

CAIRN_INLINE const struct cairn_api *cairn_api_with(size_t bytes)
{
    const struct cairn_api *api = __atomic_load_n(&cairn_api_here, __ATOMIC_RELAXED);
    return __builtin_expect(api != 0, 0) && api->bytes >= bytes ? api : (const struct cairn_api *)0;
}

CAIRN_INLINE int cairn_is_recording(void)
{
    return __atomic_load_n(&cairn_api_here, __ATOMIC_RELAXED) != 0;
}

/* Report that `block` of `size_bytes` is in use from now on. NULL is ignored. */
CAIRN_INLINE void cairn_report_alloc(const void *block, size_t size_bytes)
{
    const struct cairn_api *api = CAIRN_API(report_alloc);
    if (api != 0) {
        api->report_alloc(block, size_bytes);
    }
}

/* Report that `old_block` became `block` (may be equal). Counts as an allocation and a free. */
CAIRN_INLINE void cairn_report_realloc(const void *old_block, const void *block, size_t size_bytes)
{
    const struct cairn_api *api = CAIRN_API(report_realloc);
    if (api != 0) {
        api->report_realloc(old_block, block, size_bytes);
    }
}

/* Report that `block` is about to be taken back. Call this before the allocator can hand the block
 * out again. Also for blocks of named pools. */
CAIRN_INLINE void cairn_report_free(const void *block)
{
    const struct cairn_api *api = CAIRN_API(report_free);
    if (api != 0) {
        api->report_free(block);
    }
}

/* Report a block as cairn_report_alloc does, for the pool called `pool`: the block's stack begins
 * with a frame "[pool NAME]". Names are compared as texts and truncated to 47 bytes. A process has
 * at most 255 names, the names of events included; all further names share "[pool ...]". */
CAIRN_INLINE void cairn_pool_alloc(const char *pool, const void *block, size_t size_bytes)
{
    const struct cairn_api *api = CAIRN_API(pool_alloc);
    if (api != 0) {
        api->pool_alloc(pool, block, size_bytes);
    }
}

/* Report a reallocation as cairn_report_realloc does, for the pool called `pool`. */
CAIRN_INLINE void
cairn_pool_realloc(const char *pool, const void *old_block, const void *block, size_t size_bytes)
{
    const struct cairn_api *api = CAIRN_API(pool_realloc);
    if (api != 0) {
        api->pool_realloc(pool, old_block, block, size_bytes);
    }
}

/* Record an event that is not an allocation. `weight` has a unit of the program's choice. Events
 * are counted and weights are summed for each name and stack, apart from the heap. */
CAIRN_INLINE void cairn_event(const char *name, uint64_t weight)
{
    const struct cairn_api *api = CAIRN_API(event);
    if (api != 0) {
        api->event(name, weight);
    }
}

/* Mark a moment. The text is UTF-8; it is copied and truncated to 1024 bytes. */
CAIRN_INLINE void cairn_mark(const char *text)
{
    const struct cairn_api *api = CAIRN_API(mark);
    if (api != 0) {
        api->mark(text, CAIRN_MARK_MOMENT);
    }
}

CAIRN_INLINE void cairn_phase(const char *name)
{
    const struct cairn_api *api = CAIRN_API(mark);
    if (api != 0) {
        api->mark(name, CAIRN_MARK_PHASE);
    }
}

/* Return in `*stats` the sums so far of the process or the calling thread. The sums are exact: they
 * contain every event of any thread that happened before the call, and possibly some events of
 * other threads that happen during the call. Returns 1 if `*stats` is filled. Returns 0, with
 * `*stats` all zero, if nothing records or records with --sample, if the recorder is dead, or in a
 * signal handler that interrupted an allocation or one of these calls.
 *
 * The call waits until the recorder has read the events of all threads, usually some milliseconds.
 * It does not wait for a dead recorder. Use it in tests and now and then, not in loops. Threads
 * beyond the 1024th may share their counts with other threads of the same name. */
CAIRN_INLINE int cairn_stats(enum cairn_whose whose, struct cairn_stats *stats)
{
    const struct cairn_api *api = CAIRN_API(stats);
    __builtin_memset(stats, 0, sizeof(*stats));
    return api != 0 ? api->stats((uint32_t)whose, stats) : 0;
}

/* Counts the events between cairn_scope_begin and cairn_scope_end. Scopes may nest and overlap. A
 * scope that never ends costs nothing. A scope of CAIRN_THREAD begins and ends on one thread. */
struct cairn_scope {
    enum cairn_whose whose;
    int is_recorded;
    struct cairn_stats at_begin;
};

/* Begin a scope. Returns 1, or 0 as cairn_stats does. */
CAIRN_INLINE int cairn_scope_begin(struct cairn_scope *scope, enum cairn_whose whose)
{
    scope->whose = whose;
    scope->is_recorded = cairn_stats(whose, &scope->at_begin);
    return scope->is_recorded;
}

/* Return in `*spent` the counts since cairn_scope_begin. `*scope` does not change, so the call may
 * be repeated. Returns 0 if cairn_stats fails, now or at the beginning. */
CAIRN_INLINE int cairn_scope_end(const struct cairn_scope *scope, struct cairn_stats *spent)
{
    const struct cairn_stats *from = &scope->at_begin;
    if (!cairn_stats(scope->whose, spent) || !scope->is_recorded) {
        __builtin_memset(spent, 0, sizeof(*spent));
        return 0;
    }
    spent->allocations -= from->allocations;
    spent->allocated_bytes -= from->allocated_bytes;
    spent->frees -= from->frees;
    spent->freed_bytes -= from->freed_bytes;
    spent->temporary -= from->temporary;
    spent->live_blocks -= from->live_blocks;
    spent->live_bytes -= from->live_bytes;
    return 1;
}

/* Begin to follow the live bytes of the calling thread: its allocations, less the frees of these
 * blocks, the blocks of pools included. Returns 1; or 0 as cairn_stats does, or if 8 peaks are open
 * on this thread. Peaks may nest and overlap. End each one, on the thread that began it: until then
 * the thread sends every event separately, which costs more. Waits as cairn_stats does. */
CAIRN_INLINE int cairn_peak_begin(struct cairn_peak *peak)
{
    const struct cairn_api *api = CAIRN_API(peak_begin);
    __builtin_memset(peak, 0, sizeof(*peak));
    return api != 0 ? api->peak_begin(peak) : 0;
}

/* Return in `*bytes` the peak of the thread's live bytes above their value at the beginning; 0 if
 * they never exceeded it. A realloc holds one of its two blocks at a time. The figure is exact if
 * no other thread frees blocks of this thread or reuses their addresses. Otherwise it is never too
 * low, and too high by at most the bytes that other threads freed of it within some milliseconds.
 * Returns 0, with `*bytes` 0, if cairn_stats fails, now or at the beginning. Waits as cairn_stats
 * does. */
CAIRN_INLINE int cairn_peak_end(struct cairn_peak *peak, uint64_t *bytes)
{
    const struct cairn_api *api = CAIRN_API(peak_end);
    *bytes = 0;
    return api != 0 ? api->peak_end(peak, bytes) : 0;
}

/* CAIRN_ASSERT_AT_MOST(field, most, statement): runs the statement. Aborts with a message on stderr
 * if `field` of struct cairn_stats, counted for the calling thread over the statement, exceeds
 * `most`. Without a recorder the statement just runs. Define CAIRN_ASSERTS before the include.
 *
 *   CAIRN_ASSERT_AT_MOST(allocations, 0, step(&world));
 *   CAIRN_ASSERT_AT_MOST(live_bytes, 0, reply = answer(request); release(reply));
 *
 * CAIRN_ASSERT_PEAK_AT_MOST(most, statement): likewise for the bytes of cairn_peak_end.
 *
 *   CAIRN_ASSERT_PEAK_AT_MOST(1 << 20, parse(file));
 */
#    ifdef CAIRN_ASSERTS
#        ifdef __cplusplus
} // extern "C"
#        endif
#        include <stdio.h>
#        include <stdlib.h>
#        ifdef __cplusplus
extern "C" {
#        endif

/* `value` points to 8 bytes, which spares the macros below a cast. */
static inline void cairn_assert_at_most(
    const char *where, int line, const char *field, const void *value, long long most)
{
    long long found;
    __builtin_memcpy(&found, value, sizeof(found));
    if (found > most) {
        (void)fprintf(stderr, "%s:%d: %lld %s; at most %lld allowed\n", where, line, found, field,
                      most);
        abort();
    }
}

#        define CAIRN_ASSERT_AT_MOST(field, most, ...)                                             \
            do {                                                                                   \
                struct cairn_scope cairn_scope_;                                                   \
                struct cairn_stats cairn_spent_;                                                   \
                (void)cairn_scope_begin(&cairn_scope_, CAIRN_THREAD);                              \
                __VA_ARGS__;                                                                       \
                if (cairn_scope_end(&cairn_scope_, &cairn_spent_)) {                               \
                    cairn_assert_at_most(__FILE__, __LINE__, #field, &cairn_spent_.field, (most)); \
                }                                                                                  \
            } while (0)

#        define CAIRN_ASSERT_PEAK_AT_MOST(most, ...)                                         \
            do {                                                                             \
                struct cairn_peak cairn_peak_;                                               \
                uint64_t cairn_bytes_;                                                       \
                (void)cairn_peak_begin(&cairn_peak_);                                        \
                __VA_ARGS__;                                                                 \
                if (cairn_peak_end(&cairn_peak_, &cairn_bytes_)) {                           \
                    cairn_assert_at_most(__FILE__, __LINE__, "bytes at once", &cairn_bytes_, \
                                         (most));                                            \
                }                                                                            \
            } while (0)
#    endif /* CAIRN_ASSERTS */

#endif /* CAIRN_RECORDER_SIDE */

#ifdef __cplusplus
}
#endif

/* Define CAIRN_HEAPTRACK_NAMES to keep code that was written for heaptrack_api.h. */
#ifdef CAIRN_HEAPTRACK_NAMES
#    define heaptrack_report_alloc(block, size) cairn_report_alloc(block, size)
#    define heaptrack_report_realloc(old_block, size, block) \
        cairn_report_realloc(old_block, block, size)
#    define heaptrack_report_free(block) cairn_report_free(block)
#endif

#endif
