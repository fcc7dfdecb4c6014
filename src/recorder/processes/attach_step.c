// SPDX-License-Identifier: MIT
#include "recorder/processes/attach_step.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/os/quiet_thread.h"
#include "recorder/processes/page_probe.h"
#include "recorder/processes/pid_lookup.h"
#include "recorder/session/session_create.h"
#include "session/recorder_wake.h"

enum stage {
    STAGE_RUNNING,
    STAGE_OVER,
    STAGE_LEFT,
};

enum {
    USUAL_MS = 1000,
    LIMIT_MS = 60000, // nothing waits for a step but the process that it is about
    POLL_NS = 500000,
};

// Return whether a process or one of its ancestors is recorded: what recorded processes start is
// followed as far as it can be recorded (recorder_follow.c).
static bool is_in_family(int session_fd, int pid)
{
    enum {
        ANCESTORS_MAX = 1000 // pids may change hands meanwhile
    };
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        if (pid_lookup_maps(pid, session_fd)) {
            return pid != getpid();
        }
        pid = proc_file_parent(pid);
    }
    return false;
}

static enum err open_process(struct attach_step *step)
{
    step->is_known = step->session_fd >= 0 && is_in_family(step->session_fd, step->pid);
    return step->is_known ? ERR_CANCELLED
                          : attach_open(step->attach, step->pid, &step->options, &step->trouble);
}

static enum err search_copy(struct attach_step *step)
{
    step->is_known = !pid_lookup_may_map(step->pid, step->session_fd);
    return step->is_known
               ? ERR_CANCELLED
               : attach_late_copy(step->attach, step->pid, &step->options, &step->trouble);
}

static enum err take_step(struct attach_step *step)
{
    switch (step->kind) {
    case STEP_OPEN:
        return open_process(step);
    case STEP_BEGIN:
        return attach_begin(step->attach, step->session_fd, &step->trouble);
    case STEP_SEARCH:
        return attach_late(step->attach, &step->options, &step->trouble);
    case STEP_SEARCH_COPY:
        return search_copy(step);
    case STEP_END:
        return attach_end(step->attach, &step->trouble);
    case STEP_END_COPY:
        return attach_end_copy(step->pid, &step->trouble);
    }
    return ERR_INVALID;
}

static void free_step(struct attach_step *step)
{
    fd_closep(&step->session_fd);
    free(step);
}

static bool move_to(struct attach_step *step, enum stage stage)
{
    uint32_t running = STAGE_RUNNING;
    // Release: pairs with the acquire of attach_step_is_over. Acquire: the other side's writes.
    return atomic_compare_exchange_strong_explicit(&step->stage, &running, stage,
                                                   memory_order_acq_rel, memory_order_acquire);
}

// The recorder has left the step: undo it.
static void clean_up(struct attach_step *step)
{
    struct err_info unused = {0};
    if (step->attach != NULL) {
        (void)!attach_end(step->attach, &unused); // then its hooks do nothing
        attach_release(step->attach);
        free(step->attach);
    }
    free_step(step);
}

static bool reads_files(enum attach_step_kind kind)
{
    return kind == STEP_OPEN || kind == STEP_SEARCH || kind == STEP_SEARCH_COPY;
}

static void *run_step(void *context)
{
    struct attach_step *step = context;
    step->result = reads_files(step->kind) ? page_probe_touch(step->pid) : ERR_OK;
    step->result = step->result == ERR_OK ? take_step(step) : step->result;
    if (!move_to(step, STAGE_OVER)) {
        (void)pthread_detach(pthread_self());
        clean_up(step);
    } else if (step->session != NULL) {
        session_wake_recorder(step->session->header); // it joins the thread before it frees that
    }
    return NULL;
}

struct attach_step *attach_step_start(const struct attach_step *wanted)
{
    struct attach_step *step = malloc(sizeof(*step));
    if (step == NULL) {
        return NULL;
    }
    *step = *wanted;
    step->session_fd = step->session != NULL ? fcntl(step->session->memfd, F_DUPFD_CLOEXEC, 0) : -1;
    step->deadline_ms = clock_monotonic_ms() + LIMIT_MS;
    step->has_thread = true; // before the thread may free the step
    const int problem = quiet_thread_start(&step->thread, run_step, step);
    if (problem != 0) {
        step->has_thread = false;
        step->result = err_set_errno(&step->trouble, problem, "cannot start a thread");
        (void)move_to(step, STAGE_OVER); // it runs nowhere
    }
    return step;
}

bool attach_step_is_over(const struct attach_step *step)
{
    // Acquire: pairs with the release of the thread.
    return atomic_load_explicit(&step->stage, memory_order_acquire) == STAGE_OVER;
}

bool attach_step_is_late(const struct attach_step *step)
{
    return clock_monotonic_ms() > step->deadline_ms;
}

bool attach_step_is_slow(const struct attach_step *step)
{
    return clock_monotonic_ms() + LIMIT_MS > step->deadline_ms + USUAL_MS;
}

bool attach_step_await(const struct attach_step *step, uint64_t limit_ms)
{
    const uint64_t end_ms = clock_monotonic_ms() + limit_ms;
    while (!attach_step_is_over(step)) {
        if (clock_monotonic_ms() > end_ms) {
            return false;
        }
        clock_sleep_ns(POLL_NS);
    }
    return true;
}

void attach_step_free(struct attach_step *step)
{
    if (step != NULL) {
        if (step->has_thread) {
            (void)pthread_join(step->thread, NULL); // it has ended, or is about to
        }
        free_step(step);
    }
}

bool attach_step_leave(struct attach_step *step)
{
    return move_to(step, STAGE_LEFT);
}
