// SPDX-License-Identifier: MIT
// stack_witness: a library to preload. Walks the stack at each malloc of whatever program, by its
// changed part, and holds it against libunwind's, or on AArch64 libgcc's. At the end of the process
// it appends a line to the file STACK_WITNESS: walks compared, different, not comparable (frames
// without tables, stacks not walked to their end) and the first difference's pcs.
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __aarch64__
#    include <unwind.h>
#else
#    define UNW_LOCAL_ONLY
#    include <libunwind.h>
#endif

#include "target/unwind/unwind.h"

#define FRAMES_MAX 1000

void *__libc_malloc(size_t size);

static __thread struct unwind_thread *t_walker;
static __thread int t_is_inside;

static atomic_ulong g_compared;
static atomic_ulong g_different;
static atomic_ulong g_not_comparable;
static unsigned long g_first[2];
static int g_has_begun;

#ifdef __aarch64__
struct taken {
    void **pcs;
    int count;
    int max;
};

static _Unwind_Reason_Code take_pc(struct _Unwind_Context *frame, void *argument)
{
    struct taken *taken = argument;
    if (taken->count == taken->max) {
        return _URC_END_OF_STACK;
    }
    taken->pcs[taken->count++] = (void *)_Unwind_GetIP(frame);
    return _URC_NO_REASON;
}

static int witness(void **pcs, int max)
{
    struct taken taken = {.pcs = pcs, .max = max};
    (void)_Unwind_Backtrace(take_pc, &taken);
    return taken.count;
}
#else
static int witness(void **pcs, int max)
{
    return unw_backtrace(pcs, max);
}
#endif

// Compares, innermost first. The witness begins further in, with frames of this library.
static void compare(const struct unwind_regs *start, const struct unwind_walk *walk)
{
    static __thread void *found[FRAMES_MAX + 16];
    const int count = witness(found, FRAMES_MAX + 16);
    int at = 0;
    while (at < count && (uint64_t)found[at] != start->pc) {
        at++;
    }
    uint32_t same = 0;
    while (same < walk->count && at < count &&
           (uint64_t)found[at] == walk->frames[walk->count - 1 - same].pc) {
        same++;
        at++;
    }
    atomic_fetch_add(&g_compared, 1);
    if (same != walk->count && atomic_fetch_add(&g_different, 1) == 0) {
        g_first[0] = walk->frames[walk->count - 1 - same].pc;
        g_first[1] = at < count ? (unsigned long)found[at] : 0;
    }
}

__attribute__((noinline)) static void look(const struct unwind_regs *start)
{
    if (t_walker == NULL) {
        void *memory = mmap(NULL, unwind_thread_bytes(FRAMES_MAX, FRAMES_MAX),
                            PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return;
        }
        t_walker = unwind_thread_init(memory, FRAMES_MAX, FRAMES_MAX);
    }
    struct unwind_walk walk;
    unwind_thread_walk(t_walker, start, &walk);
    if ((walk.flags & ~(uint32_t)UNWIND_NOT_REMEMBERED) != 0) {
        atomic_fetch_add(&g_not_comparable, 1);
        return;
    }
    compare(start, &walk);
}

void *malloc(size_t size)
{
    const struct unwind_regs start = unwind_caller_regs();
    if (!t_is_inside && g_has_begun) {
        t_is_inside = 1;
        look(&start);
        t_is_inside = 0;
    }
    return __libc_malloc(size);
}

__attribute__((constructor)) static void begin(void)
{
    unwind_modules_refresh();
    g_has_begun = 1;
}

__attribute__((destructor)) static void tell(void)
{
    char line[200];
    const char *path = getenv("STACK_WITNESS");
    const int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    const int length = snprintf(line, sizeof(line), "%lu %lu %lu %lx %lx\n", g_compared,
                                g_different, g_not_comparable, g_first[0], g_first[1]);
    if (fd < 0 || write(fd, line, (size_t)length) != length) {
        abort();
    }
    close(fd);
}
