// SPDX-License-Identifier: MIT
// round_stacks THREADS STACKS ROUNDS: each of THREADS threads goes ROUNDS times round through
// STACKS (at most 4^8) call stacks, as distinct_stacks.c does, and allocates a block at the end of
// each. The size names the stack: FIRST_BYTES and its number. Threads exchange their blocks, so
// most are freed by another one. In the middle the process forks: the child does the same with
// threads of its own. So each stack has ROUNDS allocations for each thread of each process, and in
// the end no block lives.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIGITS      8
#define PLACES      1000
#define FIRST_BYTES 16

static void north(unsigned long path, int digits);
static void east(unsigned long path, int digits);
static void south(unsigned long path, int digits);
static void west(unsigned long path, int digits);

static void (*const ways[])(unsigned long path, int digits) = {north, east, south, west};

static unsigned long threads;
static unsigned long stacks;
static unsigned long rounds;
static _Atomic(void *) places[PLACES];
static atomic_ulong halves; // threads that have done half of their rounds
static _Thread_local unsigned long bytes;
static _Thread_local unsigned long next;

static inline __attribute__((always_inline)) void go_on(unsigned long path, int digits)
{
    if (digits == 0) {
        void *block = malloc(bytes);
        next = next * 6364136223846793005u + 1442695040888963407u;
        free(atomic_exchange(&places[(next >> 33) % PLACES], block));
        return;
    }
    ways[path % 4](path / 4, digits - 1);
    __asm__ volatile(""); // prevents a tail call
}

static void north(unsigned long path, int digits)
{
    go_on(path, digits);
}

static void east(unsigned long path, int digits)
{
    go_on(path, digits);
}

static void south(unsigned long path, int digits)
{
    go_on(path, digits);
}

static void west(unsigned long path, int digits)
{
    go_on(path, digits);
}

static void *go_round(void *seed)
{
    next = (unsigned long)seed;
    for (unsigned long i = 0; i < stacks * rounds; i++) {
        const unsigned long path = i % stacks;
        bytes = FIRST_BYTES + path;
        ways[path % 4](path / 4, DIGITS - 1);
        if (i == stacks * rounds / 2) {
            atomic_fetch_add(&halves, 1);
        }
    }
    return NULL;
}

static void begin(pthread_t *ids)
{
    for (unsigned long i = 0; i < threads; i++) {
        if (pthread_create(&ids[i], NULL, go_round, (void *)(i + 1)) != 0) {
            _exit(2);
        }
    }
}

static void end(const pthread_t *ids)
{
    for (unsigned long i = 0; i < threads; i++) {
        (void)pthread_join(ids[i], NULL);
    }
    for (int i = 0; i < PLACES; i++) {
        free(atomic_exchange(&places[i], NULL));
    }
}

int main(int count, char **arguments)
{
    static pthread_t ids[16];
    int status = 0;
    if (count != 4) {
        return 2;
    }
    threads = strtoul(arguments[1], NULL, 10);
    stacks = strtoul(arguments[2], NULL, 10);
    rounds = strtoul(arguments[3], NULL, 10);
    begin(ids);
    while (atomic_load(&halves) == 0) {
        (void)usleep(1000);
    }
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < PLACES; i++) {
            atomic_store(&places[i], NULL); // the parent's
        }
        begin(ids);
        end(ids);
        _exit(0);
    }
    end(ids);
    return child < 0 || waitpid(child, &status, 0) != child ? 2 : status;
}
