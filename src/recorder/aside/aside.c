// SPDX-License-Identifier: MIT
#include "recorder/aside/aside.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/sys.h"
#include "host/os/quiet_thread.h"

enum stage {
    STAGE_RUNNING,
    STAGE_OVER,
    STAGE_LEFT,
};

struct aside {
    struct aside_work work;
    pthread_t thread;
    _Atomic uint32_t stage;  // enum stage
    _Atomic uint32_t owners; // of thread and starter
};

static void let_go(struct aside *aside)
{
    // Acquire and release: the last one frees what the other has used.
    if (atomic_fetch_sub_explicit(&aside->owners, 1, memory_order_acq_rel) == 1) {
        free(aside);
    }
}

// Whether the starter waits for the end of the thread: what it owns is used after the work.
static bool is_joined(const struct aside *aside)
{
    return aside->work.tell != NULL;
}

static bool move_to(struct aside *aside, enum stage stage)
{
    uint32_t running = STAGE_RUNNING;
    // Release: pairs with the acquire of aside_is_over. Acquire: the other side's writes.
    return atomic_compare_exchange_strong_explicit(&aside->stage, &running, stage,
                                                   memory_order_acq_rel, memory_order_acquire);
}

static void *run(void *context)
{
    struct aside *aside = context;
    const struct aside_work work = aside->work;
    work.run(work.context);
    const bool is_left = !move_to(aside, STAGE_OVER);
    if (is_left || !is_joined(aside)) {
        (void)pthread_detach(pthread_self()); // not joined by anything
    }
    if (is_left && work.release != NULL) {
        work.release(work.context);
    }
    if (!is_left) {
        (void)sys_futex_wake(&aside->stage, 1); // it may not sleep
    }
    if (!is_left && work.tell != NULL) {
        work.tell(work.context);
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
    atomic_init(&aside->owners, 2);
    const int problem = quiet_thread_start(&aside->thread, run, aside);
    if (problem != 0) {
        free(aside);
        errno = problem;
        return NULL;
    }
    return aside;
}

bool aside_is_over(const struct aside *aside)
{
    // Acquire: pairs with the release of the thread.
    return atomic_load_explicit(&aside->stage, memory_order_acquire) == STAGE_OVER;
}

bool aside_await(const struct aside *aside, uint64_t limit_ns)
{
    const uint64_t end_ns = clock_monotonic_ns() + limit_ns;
    for (uint64_t now_ns; !aside_is_over(aside) && (now_ns = clock_monotonic_ns()) < end_ns;) {
        const struct timespec rest = {.tv_sec = (time_t)((end_ns - now_ns) / NS_PER_S),
                                      .tv_nsec = (long)((end_ns - now_ns) % NS_PER_S)};
        (void)sys_futex_wait(&aside->stage, STAGE_RUNNING, &rest); // the loop sees why it ended
    }
    return aside_is_over(aside);
}

void aside_free(struct aside *aside)
{
    if (aside == NULL) {
        return;
    }
    if (is_joined(aside)) {
        (void)pthread_join(aside->thread, NULL); // it has ended, or is about to
    }
    let_go(aside);
}

bool aside_leave(struct aside *aside)
{
    if (!move_to(aside, STAGE_LEFT)) {
        return false;
    }
    let_go(aside);
    return true;
}
