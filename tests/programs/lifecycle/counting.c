// SPDX-License-Identifier: MIT
// counting FILE THREADS: allocates and frees until stopped. It counts in FILE, which it maps, so
// that the counts can be read after its death.
//
//   counted[t].begun    operations that thread t has begun; an operation makes one block of
//   counted[t].done     16 + n % 500 bytes and, once it holds 64, frees its oldest
//   stop                set from outside: end with status 0
//
// So at each moment of a sudden death, the number of thread t's allocations is `done` or `begun`,
// and it holds the last 64 of them. Its stdout is "started <pid>" when all threads run.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    MAX_THREADS = 8,
    HELD = 64,
    SHARED_BYTES = 4096
};

struct count {
    _Alignas(64) _Atomic uint64_t begun;
    _Atomic uint64_t done;
};

struct shared {
    struct count counted[MAX_THREADS];
    _Atomic uint32_t stop;
    _Atomic uint32_t running;
};
_Static_assert(sizeof(struct shared) <= SHARED_BYTES, "one page");

static struct shared *shared;
static void *held[MAX_THREADS][HELD];

static __attribute__((noinline)) void *make(uint64_t n)
{
    return malloc(16 + n % 500);
}

static __attribute__((noinline)) void *make_elsewhere(uint64_t n)
{
    return malloc(16 + n % 500);
}

static void *work(void *argument)
{
    const uintptr_t thread = (uintptr_t)argument;
    struct count *count = &shared->counted[thread];
    atomic_fetch_add(&shared->running, 1);
    for (uint64_t n = 0; atomic_load(&shared->stop) == 0; n++) {
        atomic_store(&count->begun, n + 1);
        void **place = &held[thread][n % HELD];
        free(*place);
        *place = n % 3 == 0 ? make_elsewhere(n) : make(n);
        atomic_store(&count->done, n + 1);
    }
    return NULL;
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 3) {
        return 2;
    }
    const long threads = strtol(arguments[2], NULL, 10);
    const int file = open(arguments[1], O_RDWR | O_CLOEXEC);
    if (file < 0 || threads < 1 || threads > MAX_THREADS) {
        return 2;
    }
    shared = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) {
        return 2;
    }
    pthread_t others[MAX_THREADS];
    for (long i = 1; i < threads; i++) {
        if (pthread_create(&others[i], NULL, work, (void *)i) != 0) {
            return 3;
        }
    }
    while (atomic_load(&shared->running) + 1 < threads) {
    }
    char line[64];
    const int length = snprintf(line, sizeof(line), "started %d\n", (int)getpid());
    (void)!write(STDOUT_FILENO, line, (size_t)length);
    work((void *)0);
    for (long i = 1; i < threads; i++) {
        pthread_join(others[i], NULL);
    }
    return 0;
}
