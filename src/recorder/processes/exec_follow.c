// SPDX-License-Identifier: MIT
#include "recorder/processes/exec_follow.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sys.h"
#include "host/os/quiet_thread.h"
#include "recorder/processes/pid_lookup.h"
#include "recorder/session/session_create.h"
#include "session/exec_check.h"
#include "session/recorder_wake.h"

// Answer the process that waits. False: it waits no longer, or has an answer.
static bool answer(const struct followed_exec *item, enum exec_follow_answer value)
{
    struct exec_note *note = item->wanted.note;
    uint32_t wanted = EXEC_FOLLOW_WANTED;
    // Relaxed: the answer guards no other data.
    const bool is_first = atomic_compare_exchange_strong_explicit(
        &note->follow, &wanted, value, memory_order_relaxed, memory_order_relaxed);
    (void)sys_futex_wake(&note->follow, 1); // it may not sleep yet
    return is_first;
}

static void move_to(struct followed_exec *item, enum follow_stage stage)
{
    // Release: pairs with the acquire of exec_follow_stage.
    atomic_store_explicit(&item->stage, stage, memory_order_release);
    (void)sem_post(&item->has_news); // fails only beyond SEM_VALUE_MAX
    session_wake_recorder(item->follow->session->header);
}

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR) {
    }
}

static enum err put_agent_in(struct followed_exec *item)
{
    struct err_info unused = {0}; // the note has the reason
    const uint32_t flags = item->follow->session->header->flags;
    const struct attach_options options = {.names = item->follow->names,
                                           .is_fresh = true,
                                           .may_lack_names = true,
                                           .reads_python = (flags & SESSION_PYTHON) != 0};
    TRY(attach_hold_run(&item->start, &unused));
    enum err err = attach_open(item->attach, item->start.pid, &options, &unused);
    err = err == ERR_OK ? attach_begin(item->attach, item->follow->session->memfd, &unused) : err;
    if (err != ERR_OK) {
        attach_release(item->attach);
    }
    return err;
}

// The thread of one exec: its ptrace calls have to be those of one thread.
static void *follow_exec(void *context)
{
    struct followed_exec *item = context;
    struct err_info unused = {0};
    enum err err = attach_hold_begin(&item->start, &unused);
    if (err == ERR_OK) {
        err = answer(item, EXEC_FOLLOW_TRACED) ? put_agent_in(item) : ERR_CANCELLED;
        if (err == ERR_OK) {
            move_to(item, FOLLOW_HELD);
            await(&item->is_accepted);
        }
        attach_hold_release(&item->start);
    }
    (void)answer(item, EXEC_FOLLOW_NO); // unless it was answered
    item->has_failed = err != ERR_OK;
    move_to(item, FOLLOW_OVER);
    return NULL;
}

static void give_up(struct followed_exec *item)
{
    (void)answer(item, EXEC_FOLLOW_NO);
    item->has_failed = true;
    move_to(item, FOLLOW_OVER);
}

static bool is_ours(const struct exec_follow *follow, const struct wanted_exec *wanted)
{
    return wanted->exec.pid > 1 && wanted->thread > 1 && wanted->exec.pid != getpid() &&
           pid_lookup_may_map(wanted->exec.pid, follow->session->memfd) &&
           pid_lookup_may_map(wanted->thread, follow->session->memfd);
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
    item->follow = follow;
    item->attach = attach;
    item->start = (struct fresh_start){.pid = wanted->exec.pid,
                                       .tid = wanted->thread,
                                       .makes_child = wanted->makes_child,
                                       .is_cancelled = &item->is_withdrawn};
    (void)sem_init(&item->is_accepted, 0, 0); // fails only for a value that is too large
    (void)sem_init(&item->has_news, 0, 0);
    if (!is_ours(follow, wanted)) {
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
        item->has_thread = quiet_thread_start(&item->thread, follow_exec, item) == 0;
        if (!item->has_thread) {
            give_up(item);
        }
    }
}

void exec_follow_accept(struct followed_exec *item)
{
    (void)sem_post(&item->is_accepted); // fails only beyond SEM_VALUE_MAX
}

void exec_follow_remove(struct exec_follow *follow, size_t index)
{
    struct followed_exec *item = follow->items.items[index];
    if (item->has_thread) {
        exec_follow_accept(item);
        (void)pthread_join(item->thread, NULL); // it ends
    }
    if (item->attach != NULL) { // not taken: the recording has failed
        struct err_info unused = {0};
        (void)!attach_end(item->attach, &unused); // then its hooks do nothing
        attach_release(item->attach);
        free(item->attach);
    }
    // Release: pairs with the acquire of the next claim.
    atomic_store_explicit(&item->wanted.note->state, EXEC_NOTE_FREE, memory_order_release);
    (void)sem_destroy(&item->is_accepted); // nothing waits
    (void)sem_destroy(&item->has_news);
    free(item);
    follow->items.items[index] = follow->items.items[--follow->items.len];
}

void exec_follow_stop(struct exec_follow *follow)
{
    for (size_t i = 0; i < follow->items.len; i++) {
        struct followed_exec *item = follow->items.items[i];
        atomic_store_explicit(&item->is_withdrawn, true, memory_order_relaxed); // as above
        if (exec_follow_stage(item) == FOLLOW_QUEUED) {
            give_up(item);
        }
    }
    for (size_t i = 0; i < follow->items.len; i++) {
        struct followed_exec *item = follow->items.items[i];
        while (exec_follow_stage(item) == FOLLOW_RUNNING) {
            await(&item->has_news);
        }
    }
}

void exec_follow_finish(struct exec_follow *follow)
{
    for (size_t i = 0; i < follow->items.len; i++) {
        struct followed_exec *item = follow->items.items[i];
        exec_follow_accept(item);
        while (exec_follow_stage(item) != FOLLOW_OVER) {
            await(&item->has_news);
        }
    }
}

void exec_follow_release(struct exec_follow *follow)
{
    while (follow->items.len > 0) {
        exec_follow_remove(follow, follow->items.len - 1);
    }
    followed_exec_vec_release(&follow->items);
}
