// SPDX-License-Identifier: MIT
#include "recorder/processes/exec_follow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "host/os/file.h"
#include "host/os/mutex.h"
#include "recorder/aside/aside.h"
#include "recorder/processes/page_probe.h"
#include "recorder/processes/pid_lookup.h"
#include "recorder/session/session_create.h"
#include "session/exec_check.h"
#include "session/recorder_wake.h"

// Answer the process that waits. False: it waits no longer, or has an answer.
static bool answer(struct followed_exec *item, enum exec_follow_answer value)
{
    struct exec_note *note = item->wanted.note;
    uint32_t wanted = EXEC_FOLLOW_WANTED;
    mutex_lock(&item->lock);
    // Relaxed: the answer guards no other data.
    const bool is_first = item->session != NULL && atomic_compare_exchange_strong_explicit(
                                                       &note->follow, &wanted, value,
                                                       memory_order_relaxed, memory_order_relaxed);
    if (item->session != NULL) {
        (void)sys_futex_wake(&note->follow, 1); // it may not sleep yet
    }
    mutex_unlock(&item->lock);
    return is_first;
}

static void move_to(struct followed_exec *item, enum follow_stage stage)
{
    // Release: pairs with the acquire of exec_follow_stage.
    atomic_store_explicit(&item->stage, stage, memory_order_release);
    (void)sem_post(&item->has_news); // fails only beyond SEM_VALUE_MAX
    mutex_lock(&item->lock);
    if (item->session != NULL) {
        session_wake_recorder(item->session->header);
    }
    mutex_unlock(&item->lock);
}

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR) {
    }
}

static enum err put_agent_in(struct followed_exec *item)
{
    struct err_info unused = {0}; // the note has the reason
    const struct attach_options options = {.names = item->names,
                                           .is_fresh = true,
                                           .may_lack_names = true,
                                           .reads_python = item->reads_python};
    TRY(fresh_stop_run(&item->start, &unused));
    TRY(page_probe_touch(item->start.pid));
    enum err err = attach_open(item->attach, item->start.pid, &options, &unused);
    err = err == ERR_OK ? attach_begin(item->attach, item->session_fd, &unused) : err;
    if (err != ERR_OK) {
        attach_release(item->attach);
    }
    return err;
}

static bool is_ours(const struct followed_exec *item)
{
    return pid_lookup_may_map(item->wanted.exec.pid, item->session_fd) &&
           pid_lookup_may_map(item->wanted.thread, item->session_fd);
}

// The thread of one exec: its ptrace calls have to be those of one thread.
static void follow_exec(void *context)
{
    struct followed_exec *item = context;
    struct err_info unused = {0};
    enum err err = is_ours(item) ? fresh_stop_begin(&item->start, &unused) : ERR_PERMISSION;
    if (err == ERR_OK) {
        err = answer(item, EXEC_FOLLOW_TRACED) ? put_agent_in(item) : ERR_CANCELLED;
        if (err == ERR_OK) {
            move_to(item, FOLLOW_HELD);
            await(&item->is_accepted);
        }
        fresh_stop_release(&item->start);
    }
    (void)answer(item, EXEC_FOLLOW_NO); // unless it was answered
    item->has_failed = err != ERR_OK;
    move_to(item, FOLLOW_OVER);
}

static void give_up(struct followed_exec *item)
{
    (void)answer(item, EXEC_FOLLOW_NO);
    item->has_failed = true;
    move_to(item, FOLLOW_OVER);
}

static void free_item(void *context)
{
    struct followed_exec *item = context;
    if (item->attach != NULL) { // not taken: the recording has failed, or the thread was left
        struct err_info unused = {0};
        (void)!attach_end(item->attach, &unused); // then its hooks do nothing
        attach_release(item->attach);
        free(item->attach);
    }
    fd_closep(&item->session_fd);
    (void)sem_destroy(&item->is_accepted); // nothing waits
    (void)sem_destroy(&item->has_news);
    (void)pthread_mutex_destroy(&item->lock); // the same
    free(item);
}

static void withdraw(struct exec_follow *follow, uint64_t number)
{
    for (size_t i = 0; i < follow->items.len; i++) {
        struct followed_exec *item = follow->items.items[i];
        if (item->wanted.exec.number == number) {
            item->was_taken_back = true;
            // Relaxed: nothing is read that comes with it.
            atomic_store_explicit(&item->is_withdrawn, true, memory_order_relaxed);
        }
    }
}

enum err exec_follow_take(struct exec_follow *follow, const struct wanted_exec *wanted)
{
    if (wanted->exec.obstacle == EXEC_NONE) {
        withdraw(follow, wanted->exec.number);
        return ERR_OK;
    }
    struct followed_exec *item = calloc(1, sizeof(*item));
    struct attach *attach = calloc(1, sizeof(*attach));
    if (item == NULL || attach == NULL || followed_exec_vec_push(&follow->items, item) != ERR_OK) {
        free(item);
        free(attach);
        return ERR_NO_MEMORY;
    }
    item->wanted = *wanted;
    item->names = follow->names;
    item->reads_python = (follow->session->header->flags & SESSION_PYTHON) != 0;
    item->session = follow->session;
    item->session_fd = fcntl(follow->session->memfd, F_DUPFD_CLOEXEC, 0);
    item->attach = attach;
    item->start = (struct fresh_start){.pid = wanted->exec.pid,
                                       .tid = wanted->thread,
                                       .makes_child = wanted->makes_child,
                                       .is_cancelled = &item->is_withdrawn,
                                       .calls = &kernel_calls_real};
    (void)sem_init(&item->is_accepted, 0, 0); // fails only for a value that is too large
    (void)sem_init(&item->has_news, 0, 0);
    (void)pthread_mutex_init(&item->lock, NULL); // cannot fail
    const bool may_be_ours =
        wanted->exec.pid > 1 && wanted->thread > 1 && wanted->exec.pid != getpid();
    if (!may_be_ours || item->session_fd < 0) {
        give_up(item);
    }
    return ERR_OK;
}

static bool is_running(const struct followed_exec *item)
{
    const enum follow_stage stage = exec_follow_stage(item);
    return stage == FOLLOW_RUNNING || stage == FOLLOW_HELD;
}

static bool has_room(const struct exec_follow *follow, pid_t thread)
{
    size_t running = 0;
    for (size_t i = 0; i < follow->items.len; i++) {
        const struct followed_exec *item = follow->items.items[i];
        if (is_running(item) && item->wanted.thread == thread) {
            return false;
        }
        running += is_running(item);
    }
    return running < FOLLOW_THREADS_MAX;
}

void exec_follow_start(struct exec_follow *follow)
{
    for (size_t i = 0; i < follow->items.len; i++) {
        struct followed_exec *item = follow->items.items[i];
        if (exec_follow_stage(item) != FOLLOW_QUEUED || !has_room(follow, item->wanted.thread)) {
            continue;
        }
        // Relaxed: the thread does not exist yet.
        atomic_store_explicit(&item->stage, FOLLOW_RUNNING, memory_order_relaxed);
        const struct aside_work work = {.run = follow_exec, .release = free_item, .context = item};
        item->aside = aside_start(&work);
        if (item->aside == NULL) {
            give_up(item);
        }
    }
}

void exec_follow_accept(struct followed_exec *item)
{
    (void)sem_post(&item->is_accepted); // fails only beyond SEM_VALUE_MAX
}

// Take an item from the list, and free the entry of its note.
static struct followed_exec *take(struct exec_follow *follow, size_t index)
{
    struct followed_exec *item = follow->items.items[index];
    // Release: pairs with the acquire of the next claim.
    atomic_store_explicit(&item->wanted.note->state, EXEC_NOTE_FREE, memory_order_release);
    follow->items.items[index] = follow->items.items[--follow->items.len];
    return item;
}

void exec_follow_remove(struct exec_follow *follow, size_t index)
{
    struct followed_exec *item = follow->items.items[index];
    exec_follow_accept(item);
    aside_free(item->aside); // it ends
    free_item(take(follow, index));
}

// Leave an item to its thread. Return false if that is over by now.
static bool leave(struct exec_follow *follow, size_t index)
{
    struct followed_exec *item = follow->items.items[index];
    (void)answer(item, EXEC_FOLLOW_NO);
    mutex_lock(&item->lock);
    item->session = NULL;
    mutex_unlock(&item->lock);
    exec_follow_accept(item); // it waits for nothing
    (void)take(follow, index);
    const bool is_left = item->aside != NULL && aside_leave(item->aside);
    if (!is_left) {
        aside_free(item->aside);
        free_item(item);
    }
    return is_left;
}

static bool await_stage(struct followed_exec *item, enum follow_stage stage, uint64_t end_ms)
{
    while (exec_follow_stage(item) < stage) {
        const uint64_t now_ms = clock_monotonic_ms();
        const uint64_t until_ns = clock_real_ns() + (end_ms - now_ms) * NS_PER_MS;
        const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                                       .tv_nsec = (long)(until_ns % NS_PER_S)};
        if (now_ms >= end_ms) {
            return false;
        }
        (void)sem_timedwait(&item->has_news, &until); // the stage says why
    }
    return true;
}

// Wait for all; leave those that do not come.
static uint32_t await_all(struct exec_follow *follow, enum follow_stage stage, uint64_t limit_ms)
{
    const uint64_t end_ms = clock_monotonic_ms() + limit_ms;
    uint32_t left = 0;
    for (size_t i = follow->items.len; i-- > 0;) {
        if (!await_stage(follow->items.items[i], stage, end_ms)) {
            left += leave(follow, i);
        }
    }
    return left;
}

uint32_t exec_follow_stop(struct exec_follow *follow, uint64_t limit_ms)
{
    for (size_t i = 0; i < follow->items.len; i++) {
        struct followed_exec *item = follow->items.items[i];
        atomic_store_explicit(&item->is_withdrawn, true, memory_order_relaxed); // as above
        if (exec_follow_stage(item) == FOLLOW_QUEUED) {
            give_up(item);
        }
    }
    return await_all(follow, FOLLOW_HELD, limit_ms);
}

uint32_t exec_follow_finish(struct exec_follow *follow, uint64_t limit_ms)
{
    for (size_t i = 0; i < follow->items.len; i++) {
        exec_follow_accept(follow->items.items[i]);
    }
    return await_all(follow, FOLLOW_OVER, limit_ms);
}

void exec_follow_release(struct exec_follow *follow)
{
    while (follow->items.len > 0) {
        exec_follow_remove(follow, follow->items.len - 1);
    }
    followed_exec_vec_release(&follow->items);
}
