// SPDX-License-Identifier: MIT
// interrupted: asks for its own statistics while a handler that does the same interrupts it. Exit
// status 0: all questions of the thread and 100 questions of the handler were answered, and each
// answer was right at its time. A handler that interrupts the writing of its thread's question gets
// no answer, as cairn.h says; it is not counted.
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

// Ask about the main thread, which frees its allocations before it asks. Return false without an
// answer.
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

// Send the next signal after the last one was handled. The thread only waits for answers.
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
    // The creator allocates the other thread's block in glibc.
    if (pthread_create(&other, NULL, interrupt, &main_thread) != 0) {
        return 2;
    }
    while (!is_done) {
        wrong += !check();
    }
    pthread_join(other, NULL);
    return wrong != 0 || answered < ANSWERED_SIGNALS;
}
