// SPDX-License-Identifier: MIT
// signals: a timer at 1 kHz, queued signals and ended children, with handlers that allocate
// nothing, while threads compute and wait. No queued signal may get lost, none may come twice, and
// a call that a handler interrupts must say so.
#include "until_eof.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>

static _Atomic uint64_t g_ticks;
static _Atomic uint64_t g_queued;
static _Atomic uint64_t g_queued_sum;
static _Atomic uint64_t g_interrupted;

static void on_tick(int signal)
{
    (void)signal;
    g_ticks++;
}

static void on_queued(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    g_queued++;
    g_queued_sum += (uint64_t)info->si_value.sival_int;
}

static void on_poke(int signal)
{
    (void)signal;
    g_interrupted++;
}

// Computes a sum that depends on every register that the compiler uses.
static void *run_work(void *argument)
{
    (void)argument;
    while (!g_is_over) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i < 100000; i++) {
            __asm__ volatile("" : "+r"(sum));
            sum += i * i;
        }
        if (sum != UINT64_C(333328333350000)) {
            fail("a sum is %lu", (unsigned long)sum);
        }
        g_checks++;
    }
    return NULL;
}

static void *run_queue(void *argument)
{
    uint64_t *sent = argument;
    struct timespec pause = {.tv_nsec = 100000};
    while (!g_is_over) {
        union sigval value = {.sival_int = (int)(sent[0] % 1000)};
        if (sigqueue(getpid(), SIGRTMIN + 1, value) == 0) {
            sent[0]++;
            sent[1] += (uint64_t)value.sival_int;
        }
        nanosleep(&pause, NULL);
    }
    return NULL;
}

// Without a handler nothing wakes it; with one it is woken once for each signal.
static void *run_epoll(void *argument)
{
    uint64_t *woken = argument;
    struct epoll_event event;
    int epoll = epoll_create1(0);
    sigset_t others; // may end epoll_wait too
    sigfillset(&others);
    sigdelset(&others, SIGUSR1);
    sigdelset(&others, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &others, NULL);
    while (!g_is_over) {
        int got = epoll_wait(epoll, &event, 1, -1);
        if (got == 0 || errno != EINTR) {
            fail("epoll_wait: %s", strerror(errno));
        }
        (*woken)++;
        if (*woken > g_interrupted) {
            fail("epoll_wait was interrupted %lu times by %lu signals", (unsigned long)*woken,
                 (unsigned long)g_interrupted);
        }
    }
    close(epoll);
    return NULL;
}

int main(void)
{
    static uint64_t sent[2];
    static uint64_t woken;
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = on_poke;
    action.sa_flags = 0;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_sigaction = on_queued;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGRTMIN + 1, &action, NULL);
    signal(SIGUSR2, SIG_IGN);
    sigset_t poke;
    sigemptyset(&poke);
    sigaddset(&poke, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &poke, NULL);
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, NULL, &timer);
    struct itimerspec every = {.it_interval.tv_nsec = 1000000, .it_value.tv_nsec = 1000000};
    timer_settime(timer, 0, &every, NULL);
    pthread_t worker = start(run_work, NULL);
    pthread_t epoll = start(run_epoll, &woken);
    pthread_t queue = start(run_queue, sent);
    begin();
    uint64_t children = 0;
    struct timespec pause = {.tv_nsec = 5000000};
    while (!g_is_over) {
        pid_t child = fork();
        if (child == 0) {
            _exit(3);
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 3) {
            fail("waitpid: %s", strerror(errno));
        }
        children++;
        kill(getpid(), SIGUSR2); // is ignored, and must wake nothing
        pthread_kill(epoll, SIGUSR2);
        pthread_kill(epoll, SIGUSR1);
        while (nanosleep(&pause, &pause) < 0 && errno == EINTR) {
        }
        pause.tv_nsec = 5000000;
    }
    pthread_join(worker, NULL);
    pthread_join(queue, NULL);
    while (pthread_tryjoin_np(epoll, NULL) != 0) { // it may wait only after the signal
        pthread_kill(epoll, SIGUSR1);
        nanosleep(&pause, NULL);
    }
    while (g_queued < sent[0] && g_queued_sum < sent[1]) {
        nanosleep(&pause, NULL); // those that still wait
    }
    if (g_queued != sent[0] || g_queued_sum != sent[1] || g_ticks == 0 || children == 0) {
        fail("%lu of %lu queued signals, %lu ticks", (unsigned long)g_queued,
             (unsigned long)sent[0], (unsigned long)g_ticks);
    }
    return verdict();
}
