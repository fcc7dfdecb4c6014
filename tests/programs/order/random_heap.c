// SPDX-License-Identifier: MIT
// random_heap: threads that do random operations on each other's blocks. Arguments: a seed,
// threads (0: the first one alone), events per thread, and any of c (any thread frees a block), r
// (realloc chains), s (short threads), f (forked children), l (some blocks leak), a (calls of
// cairn.h: random_api.h), b (some blocks are big), h (a signal handler allocates, where the tracer
// lets it; prints how often), k (the thread that has done its events first kills all). Each
// function allocates blocks of one kind, so that the operations of
// each stack are known: see heap_tracer.h. It states no truth itself.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap_tracer.h"
#include "random_api.h"

enum {
    SLOTS = 1024, // shared by all threads
    THREADS_MAX = 64,
    OWN_MAX = 64,
};

static _Atomic(void *) g_slots[SLOTS];
static const char *g_how;
static uint64_t g_seed;
static long g_events;

static int does(char what)
{
    return strchr(g_how, what) != NULL;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void set_kind(int kind)
{
    if (tracer_set_kind != NULL) {
        tracer_set_kind(kind);
    }
}

static void leave(const void *block)
{
    if (tracer_leaves != NULL) {
        tracer_leaves(block);
    }
}

static void drop(void *block)
{
    leave(block);
    free(block);
}

#define KIND(n)                                                        \
    __attribute__((noinline)) void *make_##n(void *block, size_t size) \
    {                                                                  \
        leave(block);                                                  \
        set_kind(n);                                                   \
        void *made = block != NULL  ? realloc(block, size)             \
                     : (n) % 2 != 0 ? malloc(size)                     \
                                    : calloc(1, size);                 \
        set_kind(0);                                                   \
        return made;                                                   \
    }
KIND(1)
KIND(2)
KIND(3)
KIND(4)
KIND(5)
KIND(6)
KIND(7)
KIND(8)

static void *(*const makers[])(void *, size_t) = {make_1, make_2, make_3, make_4,
                                                  make_5, make_6, make_7, make_8};

static void *make(uint64_t *random, void *block)
{
    const uint64_t r = next_random(random);
    const size_t size = r % 512 == 1 && does('b') ? (r >> 20) % 2000000
                        : r % 64 == 0             ? 1 + (r >> 20) % 20000
                                                  : 1 + (r >> 20) % 300;
    return makers[(r >> 8) % 8](block, size);
}

static atomic_uint g_handled;

// A handler of the thread that was interrupted: in a hook, in front of it or behind it.
static void handle(int number)
{
    static __thread uint64_t random = 88172645463325252u;
    (void)number;
    if (tracer_is_inside == NULL || tracer_kind == NULL || tracer_is_inside()) {
        return;
    }
    const int kind = tracer_kind();
    void *blocks[4];
    for (int i = 0; i < 4; i++) {
        blocks[i] = make(&random, NULL);
    }
    for (int i = 0; i < 4; i++) {
        drop(blocks[i]);
    }
    drop(atomic_exchange(&g_slots[next_random(&random) % SLOTS], make(&random, NULL)));
    set_kind(kind);
    g_handled++;
}

// Threads let themselves be interrupted only between their events: as they begin and end, libc is
// in the allocator without the tracer's knowledge.
static void let_interrupt(int how)
{
    sigset_t alarms;
    (void)sigemptyset(&alarms);
    (void)sigaddset(&alarms, SIGALRM);
    if (does('h') && pthread_sigmask(how, &alarms, NULL) != 0) {
        abort();
    }
}

static void handle_signals(void)
{
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    const struct itimerval often = {{.tv_usec = 200}, {.tv_usec = 200}};
    if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &often, NULL) != 0) {
        abort();
    }
}

static void stop_signals(void)
{
    const struct itimerval never = {{0}, {0}};
    char text[32];
    (void)setitimer(ITIMER_REAL, &never, NULL);
    const int bytes = snprintf(text, sizeof(text), "%u\n", g_handled);
    (void)!write(STDOUT_FILENO, text, (size_t)bytes);
}

static void *work_shortly(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    for (int i = 0; i < 20; i++) {
        drop(atomic_exchange(&g_slots[next_random(&random) % SLOTS], make(&random, NULL)));
    }
    return NULL;
}

static void run_short_thread(uint64_t *random)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_shortly, (void *)(uintptr_t)next_random(random)) == 0) {
        (void)pthread_join(thread, NULL);
    }
}

static void run_child(uint64_t *random)
{
    const pid_t child = fork();
    if (child == 0) {
        void *own[OWN_MAX];
        struct api_thread api = {0};
        for (int round = 0; round < 20; round++) {
            for (int i = 0; i < OWN_MAX; i++) {
                own[i] = make(random, NULL);
            }
            if (does('a')) {
                api_call(&api, next_random(random));
            }
            for (int i = 0; i < OWN_MAX; i++) {
                drop(own[i]);
            }
        }
        api_end_thread(&api);
        exit(0);
    }
    (void)waitpid(child, NULL, 0);
}

static void step(uint64_t *random, void *own[OWN_MAX])
{
    const uint64_t r = next_random(random);
    void **mine = &own[(r >> 40) % OWN_MAX];
    switch (r % 16) {
    case 0:
    case 1:
    case 2:
        drop(make(random, NULL)); // temporary
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        if (does('c')) {
            drop(atomic_exchange(&g_slots[(r >> 8) % SLOTS], make(random, NULL)));
            break;
        }
        // fall through
    case 7:
    case 8:
    case 9:
        drop(*mine);
        *mine = make(random, NULL);
        break;
    case 10:
        if (does('r') && *mine != NULL) {
            *mine = make(random, *mine);
        }
        break;
    case 11:
        if (does('c') && does('r')) { // blocks of other threads
            void *other = atomic_exchange(&g_slots[(r >> 8) % SLOTS], NULL);
            drop(atomic_exchange(&g_slots[(r >> 20) % SLOTS], make(random, other)));
        }
        break;
    default:
        drop(*mine);
        *mine = NULL;
    }
}

static void *work(void *argument)
{
    const uintptr_t number = (uintptr_t)argument;
    uint64_t random = (g_seed * 1000003 + number + 1) * 0x9e3779b97f4a7c15u;
    void *own[OWN_MAX] = {NULL};
    struct api_thread api = {0};
    let_interrupt(SIG_UNBLOCK);
    for (long i = 0; i < g_events; i++) {
        if (does('s') && i % 997 == 0) {
            run_short_thread(&random);
        }
        if (does('f') && i % 4001 == 4000 && number < 4) {
            run_child(&random);
        }
        if (does('a') && i % 4 == 0) {
            api_call(&api, next_random(&random));
        }
        step(&random, own);
    }
    if (does('k')) {
        (void)kill(getpid(), SIGKILL);
    }
    let_interrupt(SIG_BLOCK);
    api_end_thread(&api);
    for (int i = 0; i < OWN_MAX; i++) {
        if (!does('l') || i % 16 != 0) {
            drop(own[i]);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    if (argc != 5) {
        return 2;
    }
    g_seed = strtoul(argv[1], NULL, 10);
    const long count = strtol(argv[2], NULL, 10) % THREADS_MAX;
    g_events = strtol(argv[3], NULL, 10);
    g_how = argv[4];
    if (does('a')) {
        api_begin();
    }
    let_interrupt(SIG_BLOCK);
    if (does('h')) {
        handle_signals();
    }
    if (count == 0) {
        (void)work(NULL);
    }
    for (uintptr_t i = 0; i < (uintptr_t)count; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0) {
            return 1;
        }
    }
    for (long i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    if (does('h')) {
        stop_signals();
    }
    for (int i = 0; i < SLOTS; i++) {
        if (!does('l') || i % 64 != 0) {
            drop(g_slots[i]);
        }
    }
    if (does('a')) {
        api_write_sums();
    }
    return 0;
}
