// SPDX-License-Identifier: MIT
#include "recorder/processes/attach_step.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "recorder/aside/aside.h"
#include "recorder/processes/page_probe.h"
#include "recorder/processes/pid_lookup.h"
#include "recorder/session/session_create.h"
#include "session/recorder_wake.h"

enum {
    USUAL_MS = 1000,
    // Nothing waits for a step but the process that it is about.
    HELD_UP_LIMIT_MS = 60000,
    LIMIT_MS = 600000, // also if it works: a slow machine takes minutes for what others do at once
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

// The recorder has left the step: undo it.
static void clean_up(void *context)
{
    struct attach_step *step = context;
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

// A process that has no room for the agent, or is too large for the recorder, fails alone: the
// recorder's own lack of memory ends the recording of all.
static void fail_alone(struct attach_step *step)
{
    if (step->result == ERR_NO_MEMORY && step->trouble.text[0] == '\0') {
        (void)err_set(&step->trouble, ERR_NO_MEMORY, "no memory for process %d", step->pid);
    }
    step->result = step->result == ERR_NO_MEMORY ? ERR_IO : step->result;
}

static void run_step(void *context)
{
    struct attach_step *step = context;
    step->result = reads_files(step->kind) ? page_probe_touch(step->pid) : ERR_OK;
    step->result = step->result == ERR_OK ? take_step(step) : step->result;
    fail_alone(step);
}

static void wake_recorder(void *context)
{
    const struct attach_step *step = context;
    if (step->session != NULL) {
        session_wake_recorder(step->session->header);
    }
}

struct attach_step *attach_step_start(const struct attach_step *wanted)
{
    struct attach_step *step = malloc(sizeof(*step));
    if (step == NULL) {
        return NULL;
    }
    *step = *wanted;
    step->session_fd = step->session != NULL ? fcntl(step->session->memfd, F_DUPFD_CLOEXEC, 0) : -1;
    step->begun_ms = clock_monotonic_ms();
    const struct aside_work work = {
        .run = run_step, .release = clean_up, .tell = wake_recorder, .context = step};
    struct aside *aside = aside_start(&work);
    if (aside == NULL) { // nothing else has the step
        step->result = err_set_errno(&step->trouble, errno, "cannot start a thread");
        fail_alone(step);
    }
    step->aside = aside;
    return step;
}

bool attach_step_is_over(const struct attach_step *step)
{
    return step->aside == NULL || aside_is_over(step->aside);
}

static uint64_t held_up_ms(const struct attach_step *step)
{
    return step->aside != NULL ? aside_held_up_ns(step->aside) / NS_PER_MS : 0;
}

bool attach_step_is_late(const struct attach_step *step)
{
    const uint64_t passed_ms = clock_monotonic_ms() - step->begun_ms;
    return passed_ms > LIMIT_MS ||
           (passed_ms > HELD_UP_LIMIT_MS && held_up_ms(step) > HELD_UP_LIMIT_MS);
}

enum attach_step_pace attach_step_pace_of(const struct attach_step *step)
{
    return held_up_ms(step) > USUAL_MS                        ? STEP_IS_HELD_UP
           : clock_monotonic_ms() > step->begun_ms + USUAL_MS ? STEP_IS_SLOW
                                                              : STEP_IS_NEW;
}

bool attach_step_await(const struct attach_step *step, uint64_t limit_ms)
{
    return step->aside == NULL || aside_await(step->aside, limit_ms * NS_PER_MS);
}

void attach_step_free(struct attach_step *step)
{
    if (step != NULL) {
        aside_free(step->aside);
        free_step(step);
    }
}

bool attach_step_leave(struct attach_step *step)
{
    return step->aside != NULL && aside_leave(step->aside);
}
