// SPDX-License-Identifier: MIT
// interrupted: asks for its own statistics while a handler that does the same interrupts it, time
// and again. Exit status 0: each question was answered, with what was true when it was asked.
#include <cairn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    SIGNALS = 100
};

static atomic_int handled;
static atomic_int wrong;

// Of the main thread, which frees what it allocates before it asks.
static void check(void)
{
    struct cairn_stats stats;
    if (!cairn_stats(CAIRN_THREAD, &stats) || stats.live_blocks != 1 ||
        stats.allocations != stats.frees + 1) {
        wrong++;
    }
}

static void handle(int number)
{
    (void)number;
    check();
    handled++;
}

// The next signal comes when the last one was handled: the thread does nothing but wait for
// answers.
static void *interrupt(void *thread)
{
    for (int i = 0; i < SIGNALS; i++) {
        pthread_kill(*(pthread_t *)thread, SIGUSR1);
        while (handled <= i) {
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t main_thread = pthread_self();
    pthread_t other;
    signal(SIGUSR1, handle);
    // The other thread's own block, which glibc allocates, counts for whoever creates it.
    if (pthread_create(&other, NULL, interrupt, &main_thread) != 0) {
        return 2;
    }
    while (handled < SIGNALS) {
        check();
    }
    pthread_join(other, NULL);
    return wrong != 0;
}
