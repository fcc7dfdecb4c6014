// SPDX-License-Identifier: MIT
// store_intake: see store_intake.h.
#include "server/store/store_intake.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/mutex.h"

enum {
    COLLECT_MS = 200,
    POLICY_MS = 3600 * MS_PER_S,
};

// A client that waits; it is on the client's stack.
struct intake_item {
    const struct recording_rows *rows; // borrowed
    struct intake_item *next;
    bool is_done;
    bool is_new;
    enum err problem;
    struct err_info info;
};

// Wait for a change until a moment of CLOCK_MONOTONIC.
static void wait_until_ms(struct store_intake *intake, uint64_t end_ms)
{
    const struct timespec end = {.tv_sec = (time_t)(end_ms / MS_PER_S),
                                 .tv_nsec = (long)(end_ms % MS_PER_S * NS_PER_MS)};
    (void)pthread_cond_timedwait(&intake->changed, &intake->mutex, &end); // the caller looks again
}

// Take up to INTAKE_MAX items, the oldest first. The caller holds the mutex.
static size_t take_items(struct store_intake *intake, struct intake_item *out[INTAKE_MAX])
{
    size_t count = 0;
    while (count < INTAKE_MAX && intake->waiting != NULL) {
        struct intake_item **last = &intake->waiting;
        while ((*last)->next != NULL) {
            last = &(*last)->next;
        }
        out[count++] = *last;
        *last = NULL;
    }
    intake->waiting_count -= count;
    return count;
}

static MUST_USE enum err
open_once(const struct store_intake *intake, struct store **store, struct err_info *info)
{
    return *store != NULL ? ERR_OK : store_open(intake->place, true, store, info);
}

// Add a batch, and write each item's result.
static void add_items(const struct store_intake *intake,
                      struct store **store,
                      struct intake_item *const *items,
                      size_t count)
{
    const struct recording_rows *rows[INTAKE_MAX];
    bool is_new[INTAKE_MAX] = {false};
    struct err_info info = {0};
    for (size_t i = 0; i < count; i++) {
        rows[i] = items[i]->rows;
    }
    enum err problem = open_once(intake, store, &info);
    if (problem == ERR_OK) {
        problem = store_add(*store, rows, count, is_new, &info);
    }
    if (problem != ERR_OK) {
        store_close(*store);
        *store = NULL;
    }
    for (size_t i = 0; i < count; i++) {
        items[i]->is_new = is_new[i];
        items[i]->problem = problem;
        items[i]->info = info;
    }
}

// Remove what the policy does not keep. What fails now is done in an hour. Then close the store: a
// removal on a full disk keeps others out until that.
static void apply_policy(const struct store_intake *intake, struct store **store)
{
    const struct store_scope all = {.is_any_cost = true};
    uint64_t count = 0;
    struct err_info info = {0};
    enum err problem = open_once(intake, store, &info);
    if (problem == ERR_OK) {
        problem = store_prune(*store, &all, intake->policy, time(NULL), &count, &info);
    }
    (void)problem; // as above
    store_close(*store);
    *store = NULL;
}

// Add the batch that waits. The caller holds the mutex, which is free meanwhile.
static void add_batch(struct store_intake *intake, struct store **store)
{
    struct intake_item *items[INTAKE_MAX];
    const size_t count = take_items(intake, items);
    mutex_unlock(&intake->mutex);
    add_items(intake, store, items, count);
    mutex_lock(&intake->mutex);
    for (size_t i = 0; i < count; i++) {
        items[i]->is_done = true;
    }
    intake->batches++;
    (void)pthread_cond_broadcast(&intake->changed);
}

static void *run_intake(void *context)
{
    struct store_intake *intake = context;
    CLEANUP(store_closep) struct store *store = NULL;
    uint64_t policy_ms = clock_monotonic_ms();
    uint64_t collect_ms = 0; // when the batch that waits is added; 0: none waits
    mutex_lock(&intake->mutex);
    while (!intake->is_over || intake->waiting != NULL) {
        const uint64_t now_ms = clock_monotonic_ms();
        if (intake->waiting != NULL && collect_ms == 0) {
            collect_ms = now_ms + COLLECT_MS;
        }
        if (intake->waiting != NULL &&
            (intake->is_over || now_ms >= collect_ms || intake->waiting_count >= INTAKE_MAX)) {
            collect_ms = 0;
            add_batch(intake, &store);
        } else if (intake->policy != NULL && now_ms >= policy_ms) {
            policy_ms = now_ms + POLICY_MS;
            mutex_unlock(&intake->mutex);
            apply_policy(intake, &store);
            mutex_lock(&intake->mutex);
        } else {
            wait_until_ms(intake, collect_ms != 0          ? collect_ms
                                  : intake->policy != NULL ? policy_ms
                                                           : now_ms + POLICY_MS);
        }
    }
    mutex_unlock(&intake->mutex);
    return NULL;
}

enum err store_intake_start(struct store_intake *intake, struct err_info *info)
{
    pthread_condattr_t attributes;
    (void)pthread_mutex_init(&intake->mutex, NULL); // cannot fail without attributes
    (void)pthread_condattr_init(&attributes);       // nor can these, on Linux
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&intake->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    const int status = pthread_create(&intake->thread, NULL, run_intake, intake);
    if (status != 0) {
        return err_set_errno(info, status, "cannot start a thread");
    }
    intake->has_thread = true;
    return ERR_OK;
}

void store_intake_stop(struct store_intake *intake)
{
    if (!intake->has_thread) {
        return;
    }
    mutex_lock(&intake->mutex);
    intake->is_over = true;
    (void)pthread_cond_broadcast(&intake->changed);
    mutex_unlock(&intake->mutex);
    (void)pthread_join(intake->thread, NULL);
    intake->has_thread = false;
}

enum err store_intake_add(struct store_intake *intake,
                          const struct recording_rows *rows,
                          bool *out_is_new,
                          struct err_info *info)
{
    struct intake_item item = {.rows = rows};
    mutex_lock(&intake->mutex);
    if (intake->is_over) {
        mutex_unlock(&intake->mutex);
        return err_set(info, ERR_CANCELLED, "the server ends");
    }
    item.next = intake->waiting;
    intake->waiting = &item;
    intake->waiting_count++;
    (void)pthread_cond_broadcast(&intake->changed);
    while (!item.is_done) {
        (void)pthread_cond_wait(&intake->changed, &intake->mutex);
    }
    mutex_unlock(&intake->mutex);
    *out_is_new = item.is_new;
    if (item.problem != ERR_OK && info != NULL) {
        *info = item.info;
    }
    return item.problem;
}
