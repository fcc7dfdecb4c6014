// SPDX-License-Identifier: MIT
/* cairn.h: what a program can tell the heap profiler that records it, and ask it.
 *
 *   cairn_report_alloc(block, size)             a custom allocator handed out a block
 *   cairn_report_realloc(old, block, size)      it moved or resized one
 *   cairn_report_free(block)                    it takes one back
 *   cairn_pool_alloc("nodes", block, size)      the first two for a pool with a name,
 *   cairn_pool_realloc("nodes", old, block, size)  which each stack then begins with
 *   cairn_event("bytes sent", 512)              something happened that weighs 512
 *   cairn_mark("loaded 3 files")                a moment, shown on the time line
 *   cairn_phase("indexing")                     from here to the next phase the program does this
 *   cairn_is_recording()                        whether anybody listens
 *   cairn_stats(CAIRN_PROCESS, &stats)          what was allocated and freed so far
 *   cairn_scope_begin, cairn_scope_end          ... and between two points
 *   cairn_peak_begin, cairn_peak_end            how much a thread held at most between them
 *   CAIRN_ASSERT_AT_MOST(allocations, 2, parse(line));    for tests
 *   CAIRN_ASSERT_PEAK_AT_MOST(1 << 20, parse(file));
 *
 * Header only, for C99 and C++11 with gcc or clang: nothing to link, nothing to install where the
 * program runs. Without a recorder each call is one load and a branch that is not taken. It works
 * in executables and shared libraries, from static libraries too, in libraries that are loaded
 * later, and in a program that cairn's library enters while it runs; in a fully static executable,
 * which cairn cannot record, the calls do nothing.
 *
 * Blocks of a pool are blocks of their own: they may lie inside of a block from malloc, even at its
 * very address. If the pool's memory comes from malloc too, both count; from mmap, only the blocks
 * do.
 *
 * Any thread may call these, in any order, signal handlers included (a mark or an event made by a
 * handler that interrupts an allocation is lost, a pool's block loses the pool's name, and
 * questions are not answered). They keep errno, take no lock and allocate nothing; none reports an
 * error. Only questions wait, and for the recorder alone: see cairn_stats. */
#ifndef CAIRN_H
#define CAIRN_H

/* Whatever warnings a program asks for are about the program. */
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

/* Whose allocations are counted. */
enum cairn_whose {
    CAIRN_PROCESS = 0,
    CAIRN_THREAD = 1 /* the calling one's */
};

/* Sums since the process or the thread began, or over a scope. Blocks of pools count as others do.
 * What is live is what was allocated and not freed; over a scope it is the change, and negative if
 * more was freed. A free counts for whoever allocated the block, whichever thread frees it. */
struct cairn_stats {
    uint64_t allocations;     /* that succeeded; a realloc is one, and a free */
    uint64_t allocated_bytes; /* as asked for */
    uint64_t frees;           /* of blocks that were recorded */
    uint64_t freed_bytes;
    uint64_t temporary; /* allocations that were freed by the thread's very next event */
    int64_t live_blocks;
    int64_t live_bytes;
};

/* A piece of the calling thread's work whose peak is wanted. All of it is cairn's. */
struct cairn_peak {
    uint32_t scope; /* 0: none */
    uint32_t reserved;
};

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
    void (*pool_alloc)(const char *pool, const void *block, size_t size_bytes);
    void (*pool_realloc)(const char *pool,
                         const void *old_block,
                         const void *block,
                         size_t size_bytes);
    void (*event)(const char *name, uint64_t weight);
    /* Fills `stats` and returns 1; or returns 0. */
    int (*stats)(uint32_t whose, struct cairn_stats *stats);
    int (*peak_begin)(struct cairn_peak *peak); /* 1 or 0 */
    int (*peak_end)(struct cairn_peak *peak, uint64_t *bytes);
};

/* cairn itself defines CAIRN_RECORDER_SIDE: it needs only what is above. */
#ifndef CAIRN_RECORDER_SIDE

/* One for each executable or library, whatever the number of files that include this: NULL if
 * nobody records. Set before main or before dlopen returns, or by cairn's library when it comes
 * later: the note below tells it where. */
__attribute__((weak, used, visibility("hidden"))) const struct cairn_api *cairn_api_here;

/* An ELF note: owner "cairn", type 1, the distance from here to cairn_api_here. */
__asm__(".pushsection .note.cairn, \"a\", %note\n"
        ".balign 4\n"
        ".long 6, 8, 1\n"
        ".asciz \"cairn\"\n"
        ".balign 4\n"
        ".quad cairn_api_here - .\n"
        ".popsection\n");

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
#    define CAIRN_INLINE static inline __attribute__((always_inline))

/* The table if it is there and has `member`: an older cairn may record a newer program. */
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

/* `block` of `size_bytes` is in use from now on. NULL is ignored. */
CAIRN_INLINE void cairn_report_alloc(const void *block, size_t size_bytes)
{
    const struct cairn_api *api = CAIRN_API(report_alloc);
    if (api != 0) {
        api->report_alloc(block, size_bytes);
    }
}

/* `old_block` became `block`, which may be the same; counts as an allocation and a free. */
CAIRN_INLINE void cairn_report_realloc(const void *old_block, const void *block, size_t size_bytes)
{
    const struct cairn_api *api = CAIRN_API(report_realloc);
    if (api != 0) {
        api->report_realloc(old_block, block, size_bytes);
    }
}

/* `block` is about to be taken back: call it before somebody else can be given the block. Blocks of
 * named pools too. */
CAIRN_INLINE void cairn_report_free(const void *block)
{
    const struct cairn_api *api = CAIRN_API(report_free);
    if (api != 0) {
        api->report_free(block);
    }
}

/* As cairn_report_alloc, for a block of the pool of that name: the block's stack begins with a
 * frame "[pool NAME]". Names are compared as texts; of more than 47 bytes the rest is cut, and a
 * process has 255 of them, those of events included: beyond, all share "[pool ...]". */
CAIRN_INLINE void cairn_pool_alloc(const char *pool, const void *block, size_t size_bytes)
{
    const struct cairn_api *api = CAIRN_API(pool_alloc);
    if (api != 0) {
        api->pool_alloc(pool, block, size_bytes);
    }
}

/* As cairn_report_realloc. */
CAIRN_INLINE void
cairn_pool_realloc(const char *pool, const void *old_block, const void *block, size_t size_bytes)
{
    const struct cairn_api *api = CAIRN_API(pool_realloc);
    if (api != 0) {
        api->pool_realloc(pool, old_block, block, size_bytes);
    }
}

/* Something happened that is no allocation, and weighs `weight` in a unit of the program's choice.
 * Events are counted and weights are summed for each name and stack, apart from the heap. */
CAIRN_INLINE void cairn_event(const char *name, uint64_t weight)
{
    const struct cairn_api *api = CAIRN_API(event);
    if (api != 0) {
        api->event(name, weight);
    }
}

/* Text in UTF-8, copied; of more than 1024 bytes the rest is cut. */
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

/* What was recorded so far, of the process or the calling thread. Exact: everything that happened
 * before the call is in it, whichever thread did it; of other threads' events that happen while it
 * waits, some may be. 1: `*stats` is filled. 0: nothing records (or the recorder is dead, or a
 * signal handler asks that interrupted an allocation or a call of these), `*stats` is all zero.
 *
 * Waits for the recorder, some milliseconds as a rule, for it must have read what all threads did;
 * not for a dead one. For tests and now and then, not for loops. Threads beyond the 1024th may
 * share their counts with others of their name. */
CAIRN_INLINE int cairn_stats(enum cairn_whose whose, struct cairn_stats *stats)
{
    const struct cairn_api *api = CAIRN_API(stats);
    __builtin_memset(stats, 0, sizeof(*stats));
    return api != 0 ? api->stats((uint32_t)whose, stats) : 0;
}

/* What happens between cairn_scope_begin and cairn_scope_end. Scopes may nest and overlap; one that
 * is never ended costs nothing. Those of CAIRN_THREAD begin and end on one thread. */
struct cairn_scope {
    enum cairn_whose whose;
    int is_recorded;
    struct cairn_stats at_begin;
};

/* 1: counted from here. 0: as cairn_stats. */
CAIRN_INLINE int cairn_scope_begin(struct cairn_scope *scope, enum cairn_whose whose)
{
    scope->whose = whose;
    scope->is_recorded = cairn_stats(whose, &scope->at_begin);
    return scope->is_recorded;
}

/* The counts since cairn_scope_begin, which stays as it is: it may be asked again. 0: as
 * cairn_stats, now or at the beginning. */
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

/* From here on it is followed how much the calling thread holds: what it allocated less what of
 * that was freed, the blocks of pools included. 1: it is. 0: as cairn_stats, or 8 such pieces of
 * work are open on this thread. They may nest and overlap. Each that was begun should be ended, on
 * the thread that began it: until then every event of the thread is sent by itself, which costs
 * more. */
CAIRN_INLINE int cairn_peak_begin(struct cairn_peak *peak)
{
    const struct cairn_api *api = CAIRN_API(peak_begin);
    __builtin_memset(peak, 0, sizeof(*peak));
    return api != 0 ? api->peak_begin(peak) : 0;
}

/* `*bytes`: by how much more the thread held than at the beginning, when that was most; 0 if it
 * never held more. A realloc holds one of its two blocks at a time. Exact as long as no other
 * thread frees, or is given the address of, what this one allocated; with such threads at work
 * never too low, and too high by no more than they freed of it within some milliseconds. 0: as
 * cairn_stats, now or at the beginning; `*bytes` is 0. Waits as cairn_stats does, and so does
 * cairn_peak_begin. */
CAIRN_INLINE int cairn_peak_end(struct cairn_peak *peak, uint64_t *bytes)
{
    const struct cairn_api *api = CAIRN_API(peak_end);
    *bytes = 0;
    return api != 0 ? api->peak_end(peak, bytes) : 0;
}

/* CAIRN_ASSERT_AT_MOST(field, most, statement): runs the statement, and aborts with a message on
 * stderr if `field` of struct cairn_stats, over what the calling thread did in it, is more than
 * `most`. Where nothing records, the statement just runs. Define CAIRN_ASSERTS before the include.
 *
 *   CAIRN_ASSERT_AT_MOST(allocations, 0, step(&world));
 *   CAIRN_ASSERT_AT_MOST(live_bytes, 0, reply = answer(request); release(reply));
 *
 * CAIRN_ASSERT_PEAK_AT_MOST(most, statement): the same for what cairn_peak_end tells.
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

/* `value` points to 8 bytes, so that no cast stands in the macros below. */
static inline void cairn_assert_at_most(
    const char *where, int line, const char *field, const void *value, long long most)
{
    long long found;
    __builtin_memcpy(&found, value, sizeof(found));
    if (found > most) {
        (void)fprintf(stderr, "%s:%d: %lld %s, and at most %lld were to be\n", where, line, found,
                      field, most);
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

#        define CAIRN_ASSERT_PEAK_AT_MOST(most, ...)                                              \
            do {                                                                                  \
                struct cairn_peak cairn_peak_;                                                    \
                uint64_t cairn_bytes_;                                                            \
                (void)cairn_peak_begin(&cairn_peak_);                                             \
                __VA_ARGS__;                                                                      \
                if (cairn_peak_end(&cairn_peak_, &cairn_bytes_)) {                                \
                    cairn_assert_at_most(__FILE__, __LINE__, "bytes held at once", &cairn_bytes_, \
                                         (most));                                                 \
                }                                                                                 \
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
