// SPDX-License-Identifier: MIT
// burst SHAPE BYTES KEEP_EACH: a heap after a burst of 48 MiB, which kept what it freed. Blocks
// have BYTES bytes, and each KEEP_EACH-th stays (0: none):
//
//   one       one thread allocates and frees
//   handed    8 threads allocate, the main thread frees
//   threads   each of 8 threads allocates and frees
//   large     buffers of 16 MiB below a small block, after freed ones raised the size from which
//             glibc maps them apart
//   tops      as threads, after such a buffer: arenas keep their ends
//   heaps     a thread allocates buffers of 8 MiB, after such a buffer, and a small block between
//             the last ones; the main thread frees the buffers: a heap of an arena has room for
//             seven, and ends behind them
//   behind    a thread allocates buffers of 4 MiB, after such a buffer; another thread of its arena
//             has its cache behind them, which libc itself allocates; the main thread frees the
//             buffers: they are free below that cache, and the end is above it
//
// Then it answers "t" with a release of free memory by its allocator, and says how many bytes less
// are resident; "q" ends it.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ALL_BYTES = 48 << 20,
    THREADS = 8,
    LARGE_BYTES = 16 << 20,
    LARGEST_BYTES = 31 << 20, // that glibc lets raise its threshold
    BUFFERS = 12,
    BUFFER_BYTES = 8 << 20,
};

static size_t g_size_bytes;
static size_t g_keep_each;
static size_t g_count; // of each thread
static bool g_frees_itself;
static void **g_made[THREADS];
static pthread_barrier_t g_is_built;

__attribute__((noinline)) static void *make(size_t size_bytes)
{
    char *made = malloc(size_bytes);
    if (made == NULL) {
        abort();
    }
    memset(made, 1, size_bytes);
    return made;
}

static void *mapped(size_t size_bytes)
{
    void *made = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) {
        abort();
    }
    return made;
}

static void fill(size_t thread)
{
    g_made[thread] = mapped(g_count * sizeof(void *));
    for (size_t i = 0; i < g_count; i++) {
        g_made[thread][i] = make(g_size_bytes);
    }
}

static void drain(size_t thread)
{
    for (size_t i = 0; i < g_count; i++) {
        if (g_keep_each == 0 || i % g_keep_each != 0) {
            free(g_made[thread][i]);
        }
    }
}

static void *work(void *thread)
{
    fill((size_t)(uintptr_t)thread);
    if (g_frees_itself) {
        drain((size_t)(uintptr_t)thread);
    }
    (void)pthread_barrier_wait(&g_is_built);
    for (;;) {
        (void)pause();
    }
    return NULL;
}

static void run_threads(void)
{
    g_count = ALL_BYTES / g_size_bytes / THREADS;
    (void)pthread_barrier_init(&g_is_built, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(uintptr_t)i) != 0) {
            abort();
        }
    }
    (void)pthread_barrier_wait(&g_is_built);
    for (size_t i = 0; !g_frees_itself && i < THREADS; i++) {
        drain(i);
    }
}

static void *make_large(void)
{
    void *buffers[ALL_BYTES / LARGE_BYTES];
    for (size_t size_bytes = 1 << 20; size_bytes <= LARGEST_BYTES; size_bytes += 3 << 20) {
        free(make(size_bytes));
    }
    for (size_t i = 0; i < ALL_BYTES / LARGE_BYTES; i++) {
        buffers[i] = make(LARGE_BYTES);
    }
    void *last = make(64);
    for (size_t i = 0; i < ALL_BYTES / LARGE_BYTES; i++) {
        free(buffers[i]);
    }
    return last;
}

static void *make_buffers(void *buffers)
{
    for (size_t i = 0; i < BUFFERS; i++) {
        ((void **)buffers)[i] = make(BUFFER_BYTES);
        if (i == 7) { // in the second heap, which stays
            (void)make(64);
        }
    }
    return NULL;
}

static void fill_heaps(void)
{
    void *buffers[BUFFERS];
    pthread_t thread;
    free(make(12 << 20));
    if (pthread_create(&thread, NULL, make_buffers, (void *)buffers) != 0 ||
        pthread_join(thread, NULL) != 0) {
        abort();
    }
    for (size_t i = 0; i < BUFFERS; i++) {
        free(buffers[i]);
    }
}

static void *make_some_and_wait(void *buffers)
{
    for (size_t i = 0; buffers != NULL && i < BUFFERS; i++) {
        ((void **)buffers)[i] = make(BUFFER_BYTES / 2);
    }
    free(make(64));
    (void)pthread_barrier_wait(&g_is_built);
    for (;;) {
        (void)pause();
    }
    return NULL;
}

static void fill_below(void)
{
    void *buffers[BUFFERS];
    pthread_t thread;
    free(make(12 << 20));
    (void)mallopt(M_ARENA_MAX, 2); // two threads without buffers share them
    (void)pthread_barrier_init(&g_is_built, NULL, 2);
    for (int i = 0; i < 3; i++) {
        if (pthread_create(&thread, NULL, make_some_and_wait, i == 0 ? (void *)buffers : NULL) !=
            0) {
            abort();
        }
        (void)pthread_barrier_wait(&g_is_built);
    }
    for (size_t i = 0; i < BUFFERS; i++) {
        free(buffers[i]);
    }
}

static void *burst(const char *shape)
{
    g_frees_itself = strcmp(shape, "threads") == 0 || strcmp(shape, "tops") == 0;
    if (strcmp(shape, "large") == 0) {
        return make_large();
    }
    if (strcmp(shape, "heaps") == 0) {
        fill_heaps();
        return NULL;
    }
    if (strcmp(shape, "behind") == 0) {
        fill_below();
        return NULL;
    }
    if (strcmp(shape, "tops") == 0) {
        free(make(LARGEST_BYTES));
    }
    if (strcmp(shape, "one") != 0) {
        run_threads();
        return NULL;
    }
    g_count = ALL_BYTES / g_size_bytes;
    fill(0);
    void *last = make(64);
    drain(0);
    return last;
}

// Call the release of the allocator that serves malloc.
static void release(void)
{
    int (*const mallctl)(const char *, void *, size_t *, void *, size_t) =
        (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
    void (*const release_free)(void) =
        (void (*)(void))dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
    void (*const collect)(bool) = (void (*)(bool))dlsym(RTLD_DEFAULT, "mi_collect");
    if (mallctl != NULL) {
        (void)mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
        (void)mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
    } else if (release_free != NULL) {
        release_free();
    } else if (collect != NULL) {
        collect(true);
    } else {
        (void)malloc_trim(0);
    }
}

// Without stdio, which allocates. statm is not exact: each processor has counts that it has not
// added yet.
static size_t resident_bytes(void)
{
    char text[256] = "";
    size_t kib = 0;
    const int fd = open("/proc/self/smaps_rollup", O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
        sscanf(text, "%*[^\n] Rss: %zu kB", &kib) != 1) {
        abort();
    }
    (void)close(fd);
    return kib * 1024;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        return 1;
    }
    g_size_bytes = strtoul(argv[2], NULL, 10);
    g_keep_each = strtoul(argv[3], NULL, 10);
    void *last = burst(argv[1]);
    (void)!write(STDOUT_FILENO, "ready\n", strlen("ready\n"));
    for (char command; read(STDIN_FILENO, &command, 1) == 1 && command != 'q';) {
        char text[64];
        const size_t before_bytes = resident_bytes();
        release();
        const size_t after_bytes = resident_bytes();
        const size_t less_bytes = before_bytes > after_bytes ? before_bytes - after_bytes : 0;
        (void)snprintf(text, sizeof(text), "%zu released\n", less_bytes);
        (void)!write(STDOUT_FILENO, text, strlen(text));
    }
    _exit(last != NULL && *(char *)last != 1);
}
