// SPDX-License-Identifier: MIT
// every_part: has something in each part of a report, once.
//
//   keep_rows      100 blocks of 1000 bytes, never freed
//   churn          50 blocks of 200 bytes, each freed at once
//   hold_most      one block of 3000000 bytes, freed: the peak
//   grow           one block of 1000 bytes, reallocated to 5000, never freed
//   work           in a thread "worker", which stays: 20 blocks of 400 bytes, never freed
//   use_pool       in the pool "nodes": 3 blocks of 64 bytes from static memory, one is freed
//   map_cache      maps 8 MiB and uses them; map_scratch maps 4 MiB, uses and unmaps them
//   in_child       a forked child: 10 blocks of 700 bytes, never freed, then it limits its address
//                  space to 3 GiB, maps 1.5 GiB of that without use, and ends by _exit(7)
// and the phases "fill" and "end", a mark "filled", and two events "sent" of weight 512.
//
// Prints what it knows itself: "pid N", "child N", "room 1" if its child could map so much, and
// "stats N" with the allocations that cairn_stats() knows, 0 without an answer. With the argument
// "wait" it begins when it has read a line.
//
// PREFIX: of the allocator's functions.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cairn.h"

#ifdef PREFIX
#    define JOIN_(prefix, name) prefix##name
#    define JOIN(prefix, name)  JOIN_(prefix, name)
#    define ALLOCATE            JOIN(PREFIX, malloc)
#    define RESIZE              JOIN(PREFIX, realloc)
#    define RELEASE             JOIN(PREFIX, free)
void *ALLOCATE(size_t size);
void *RESIZE(void *block, size_t size);
void RELEASE(void *block);
#else
#    define ALLOCATE malloc
#    define RESIZE   realloc
#    define RELEASE  free
#endif

#define MIB ((size_t)1 << 20)

static void *volatile g_kept; // the latest block

static void tell(const char *name, unsigned long number)
{
    char line[64];
    const int len = snprintf(line, sizeof(line), "%s %lu\n", name, number);
    if (write(STDOUT_FILENO, line, (size_t)len) != len) {
        abort();
    }
}

static void keep_rows(void)
{
    for (int i = 0; i < 100; i++) {
        g_kept = memset(ALLOCATE(1000), 1, 1000);
    }
}

static void churn(void)
{
    for (int i = 0; i < 50; i++) {
        g_kept = ALLOCATE(200);
        RELEASE(g_kept);
    }
}

static void hold_most(void)
{
    g_kept = memset(ALLOCATE(3000000), 1, 3000000);
    RELEASE(g_kept);
}

static void grow(void)
{
    g_kept = ALLOCATE(1000);
    g_kept = RESIZE(g_kept, 5000);
}

static void *work(void *pipe_end)
{
    (void)prctl(PR_SET_NAME, "worker");
    for (int i = 0; i < 20; i++) {
        g_kept = ALLOCATE(400);
    }
    if (write(*(const int *)pipe_end, "", 1) != 1) {
        abort();
    }
    for (;;) {
        (void)pause();
    }
}

static void use_pool(void)
{
    static char nodes[3][64];
    for (int i = 0; i < 3; i++) {
        cairn_pool_alloc("nodes", nodes[i], sizeof(nodes[i]));
    }
    cairn_report_free(nodes[1]);
}

static void *map(size_t bytes)
{
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        abort();
    }
    return mapped;
}

static void map_cache(void)
{
    memset(map(8 * MIB), 1, 8 * MIB);
}

static void map_scratch(void)
{
    void *scratch = map(4 * MIB);
    memset(scratch, 1, 4 * MIB);
    if (munmap(scratch, 4 * MIB) != 0) {
        abort();
    }
}

static void in_child(void)
{
    for (int i = 0; i < 10; i++) {
        g_kept = ALLOCATE(700);
    }
    const struct rlimit limit = {.rlim_cur = 3072 * MIB, .rlim_max = RLIM_INFINITY};
    const int is_limited = setrlimit(RLIMIT_AS, &limit) == 0;
    const void *mapped =
        mmap(NULL, 1536 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    tell("room", is_limited && mapped != MAP_FAILED);
    _exit(7);
}

static void use_child(void)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        in_child();
    }
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
        abort();
    }
    tell("child", (unsigned long)child);
}

static void use_thread(void)
{
    static int ends[2];
    char byte;
    pthread_t thread;
    if (pipe(ends) != 0 || pthread_create(&thread, NULL, work, ends + 1) != 0 ||
        read(ends[0], &byte, 1) != 1) {
        abort();
    }
}

int main(int argc, char **argv)
{
    char byte;
    struct cairn_stats stats;
    tell("pid", (unsigned long)getpid());
    if (argc > 1 && strcmp(argv[1], "wait") == 0 && read(STDIN_FILENO, &byte, 1) != 1) {
        return 1;
    }
    cairn_phase("fill");
    keep_rows();
    churn();
    hold_most();
    grow();
    cairn_mark("filled");
    use_thread();
    use_pool();
    cairn_event("sent", 512);
    cairn_event("sent", 512);
    map_cache();
    map_scratch();
    use_child();
    cairn_phase("end");
    tell("stats", cairn_stats(CAIRN_PROCESS, &stats) != 0 ? stats.allocations : 0);
    return 0;
}
