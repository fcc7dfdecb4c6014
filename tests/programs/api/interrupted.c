// SPDX-License-Identifier: MIT
// interrupted: asks for its own statistics while a handler that does the same interrupts it, time
// and again. Exit status 0: the thread's own questions were all answered, so were 100 of the
// handler's, and each answer was true when it was asked for. A handler that comes while its
// thread's question is still being written is told nothing, as cairn.h says: it does not count.
#include <cairn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    ANSWERED_SIGNALS = 100,
    SIGNALS_MAX = 100 * ANSWERED_SIGNALS
};

static atomic_int handled;
static atomic_int answered;
static atomic_int wrong;
static atomic_int is_done;

// Asks about the main thread, which frees what it allocates before it asks. False: not answered.
static int check(void)
{
    struct cairn_stats stats;
    const int is_answered = cairn_stats(CAIRN_THREAD, &stats);
    wrong += is_answered && (stats.live_blocks != 1 || stats.allocations != stats.frees + 1);
    return is_answered;
}

static void handle(int number)
{
    (void)number;
    answered += check();
    handled++;
}

// The next signal comes when the last one was handled: the thread does nothing but wait for
// answers.
static void *interrupt(void *thread)
{
    for (int i = 0; i < SIGNALS_MAX && answered < ANSWERED_SIGNALS; i++) {
        pthread_kill(*(pthread_t *)thread, SIGUSR1);
        while (handled <= i) {
        }
    }
    is_done = 1;
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
    while (!is_done) {
        wrong += !check();
    }
    pthread_join(other, NULL);
    return wrong != 0 || answered < ANSWERED_SIGNALS;
}
