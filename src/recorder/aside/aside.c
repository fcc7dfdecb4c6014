// SPDX-License-Identifier: MIT
#include "recorder/aside/aside.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "host/threads/quiet_thread.h"
#include "host/threads/thread_share.h"

enum stage {
    STAGE_RUNNING,
    STAGE_TELLING,
    STAGE_OVER,
    STAGE_ENDED,
    STAGE_LEFT,
};

struct aside {
    struct aside_work work;
    _Atomic uint32_t stage;  // enum stage
    _Atomic uint32_t owners; // of thread and starter
    _Atomic pid_t thread_id; // 0: it waits for its first turn
    // The starter's: when the work began, and what the thread had had by then.
    uint64_t begun_ns;
    struct thread_share before;
};

static void let_go(struct aside *aside)
{
    // Acquire and release: the last one frees what the other has used.
    if (atomic_fetch_sub_explicit(&aside->owners, 1, memory_order_acq_rel) == 1) {
        free(aside);
    }
}

static bool end_run(struct aside *aside, enum stage stage)
{
    uint32_t running = STAGE_RUNNING;
    // Release: pairs with the acquire of stage_of. Acquire: the other side's writes.
    return atomic_compare_exchange_strong_explicit(&aside->stage, &running, stage,
                                                   memory_order_acq_rel, memory_order_acquire);
}

static uint32_t stage_of(const struct aside *aside)
{
    // Acquire: pairs with the releases of the thread.
    return atomic_load_explicit(&aside->stage, memory_order_acquire);
}

static pid_t thread_of(const struct aside *aside)
{
    // Relaxed: as in run.
    return atomic_load_explicit(&aside->thread_id, memory_order_relaxed);
}

// Tell that the stage is another one.
static void enter(struct aside *aside, enum stage stage)
{
    // Release: pairs with the acquire of stage_of.
    atomic_store_explicit(&aside->stage, stage, memory_order_release);
    (void)sys_futex_wake(&aside->stage, 1); // the other side may not sleep
}

// Do the work. Return whether further work may come.
static bool run_once(struct aside *aside)
{
    const struct aside_work work = aside->work;
    work.run(work.context);
    if (end_run(aside, STAGE_TELLING)) {
        if (work.tell != NULL) {
            work.tell(work.context);
        }
        enter(aside, STAGE_OVER);
        return true;
    }
    if (work.release != NULL) {
        work.release(work.context);
    }
    return false;
}

static void *run(void *context)
{
    struct aside *aside = context;
    // Relaxed: it orders nothing.
    atomic_store_explicit(&aside->thread_id, gettid(), memory_order_relaxed);
    (void)pthread_detach(pthread_self()); // not joined by anything
    while (run_once(aside)) {
        while (stage_of(aside) == STAGE_OVER) {
            (void)sys_futex_wait(&aside->stage, STAGE_OVER, NULL); // the loop sees why it ended
        }
        if (stage_of(aside) == STAGE_ENDED) {
            break;
        }
    }
    let_go(aside);
    return NULL;
}

struct aside *aside_start(const struct aside_work *work)
{
    struct aside *aside = calloc(1, sizeof(*aside));
    if (aside == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    aside->work = *work;
    aside->begun_ns = clock_monotonic_ns();
    atomic_init(&aside->owners, 2);
    pthread_t unused;
    const int problem = quiet_thread_start(&unused, run, aside);
    if (problem != 0) {
        free(aside);
        errno = problem;
        return NULL;
    }
    return aside;
}

void aside_again(struct aside *aside, const struct aside_work *work)
{
    aside->work = *work;
    aside->begun_ns = clock_monotonic_ns();
    aside->before = (struct thread_share){0};                   // of no account
    (void)!thread_share_read(thread_of(aside), &aside->before); // then it remains so
    enter(aside, STAGE_RUNNING);
}

uint64_t aside_held_up_ns(const struct aside *aside)
{
    const struct thread_share *before = &aside->before;
    const uint64_t passed_ns = clock_monotonic_ns() - aside->begun_ns;
    struct thread_share now;
    if (thread_of(aside) == 0) {
        return 0;
    }
    if (!thread_share_read(thread_of(aside), &now)) {
        return passed_ns;
    }
    const uint64_t had_ns = now.ran_ns - before->ran_ns + now.queued_ns - before->queued_ns;
    return now.can_run || had_ns > passed_ns ? 0 : passed_ns - had_ns;
}

bool aside_is_over(const struct aside *aside)
{
    return stage_of(aside) == STAGE_OVER;
}

bool aside_await(const struct aside *aside, uint64_t limit_ns)
{
    const uint64_t end_ns = clock_monotonic_ns() + limit_ns;
    uint64_t now_ns;
    for (uint32_t stage;
         (stage = stage_of(aside)) != STAGE_OVER && (now_ns = clock_monotonic_ns()) < end_ns;) {
        const struct timespec rest = {.tv_sec = (time_t)((end_ns - now_ns) / NS_PER_S),
                                      .tv_nsec = (long)((end_ns - now_ns) % NS_PER_S)};
        (void)sys_futex_wait(&aside->stage, stage, &rest); // the loop sees why it ended
    }
    return aside_is_over(aside);
}

void aside_free(struct aside *aside)
{
    if (aside == NULL) {
        return;
    }
    while (!aside_await(aside, NS_PER_S)) { // it may still tell
    }
    enter(aside, STAGE_ENDED);
    let_go(aside);
}

bool aside_leave(struct aside *aside)
{
    if (!end_run(aside, STAGE_LEFT)) {
        return false;
    }
    let_go(aside);
    return true;
}
