// SPDX-License-Identifier: MIT
// threads: threads that come and go, that have names, that are cancelled inside malloc. Every
// thread frees what it allocates; totals are printed.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CHURN_THREADS 2000
#define CHURN_BLOCKS  10
#define CHURN_BATCH   100 // then it waits for a byte

static pthread_key_t late_key;
static uintptr_t late_rounds;

// Destructors of keys allocate too, in every round that they are asked to; in the fourth, which is
// the last, after cairn's own.
static void late_destructor(void *value)
{
    const uintptr_t round = (uintptr_t)value;
    free(malloc(1000 + round));
    if (round < late_rounds) {
        pthread_setspecific(late_key, (void *)(round + 1));
    }
}

static void *churn_thread(void *argument)
{
    const size_t serial = (size_t)argument;
    pthread_setspecific(late_key, (void *)(uintptr_t)1);
    for (size_t i = 0; i < CHURN_BLOCKS; i++) {
        free(malloc(10000 + serial));
    }
    return NULL;
}

static int churn(size_t count, uintptr_t rounds)
{
    late_rounds = rounds;
    pthread_key_create(&late_key, late_destructor);
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, churn_thread, (void *)i) != 0) {
            return 1;
        }
        pthread_join(thread, NULL);
        char byte;
        if ((i + 1) % CHURN_BATCH == 0 && (write(1, ".", 1) != 1 || read(0, &byte, 1) != 1)) {
            return 1;
        }
    }
    return 0;
}

static void *named_thread(void *name)
{
    if (strcmp(name, "late") == 0) {
        free(malloc(77));
    }
    prctl(PR_SET_NAME, name);
    free(malloc(88));
    return NULL;
}

static int names(void)
{
    static char all[2][8] = {"early", "late"};
    for (size_t i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, named_thread, all[i]);
        pthread_join(thread, NULL);
    }
    return 0;
}

// A thread that may be cancelled at any instruction while it does nothing but allocate. What it
// held is lost to it, that is its own doing; the next threads must be recorded all the same.
// glibc's own lock may be left taken, so the blocks are small ones of the thread's cache.
static sem_t begun;

static void *cancelled_thread(void *unused)
{
    (void)unused;
    free(malloc(24));
    sem_post(&begun);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;) {
        free(malloc(24));
    }
    return NULL;
}

static int cancel(void)
{
    sem_init(&begun, 0, 0);
    for (size_t i = 0; i < 200; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, cancelled_thread, NULL);
        sem_wait(&begun);
        pthread_cancel(thread);
        void *result = NULL;
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED) {
            return 1;
        }
        free(malloc(4000 + i));
    }
    return 0;
}

// Many threads at once, and blocks that wander from one to the next.
#define CROSS_THREADS 8
#define CROSS_ROUNDS  5000
static _Atomic(void *) hands[CROSS_THREADS];

static void *cross_thread(void *argument)
{
    const size_t self = (size_t)argument;
    for (size_t i = 0; i < CROSS_ROUNDS; i++) {
        void *mine = malloc(32 + self);
        free(__atomic_exchange_n((void **)&hands[(self + i) % CROSS_THREADS], mine,
                                 __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static int cross(void)
{
    pthread_t threads[CROSS_THREADS];
    for (size_t i = 0; i < CROSS_THREADS; i++) {
        pthread_create(&threads[i], NULL, cross_thread, (void *)i);
    }
    for (size_t i = 0; i < CROSS_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < CROSS_THREADS; i++) {
        free(hands[i]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        return 2;
    }
    if (strcmp(argv[1], "churn") == 0) {
        return churn(CHURN_THREADS, 3);
    }
    if (strcmp(argv[1], "late") == 0) {
        return churn(50, 4);
    }
    if (strcmp(argv[1], "names") == 0) {
        return names();
    }
    if (strcmp(argv[1], "cancel") == 0) {
        return cancel();
    }
    return cross();
}
