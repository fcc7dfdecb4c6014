// SPDX-License-Identifier: MIT
// checkpoint: see the header.
#include "recorder/checkpoint.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    COST_DIVISOR = 50, // a checkpoint may take this part of its interval
    WRITER_NICE = 10,
};

enum err checkpoint_init(struct checkpoint *checkpoint, const char *path, uint64_t interval_ms)
{
    void *report = mmap(NULL, sizeof(struct err_info), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) {
        return ERR_NO_MEMORY;
    }
    *checkpoint = (struct checkpoint){.path = path,
                                      .asked_ms = interval_ms,
                                      .interval_ms = interval_ms,
                                      .next_ms = interval_ms,
                                      .report = report};
    return ERR_OK;
}

void checkpoint_release(struct checkpoint *checkpoint)
{
    if (checkpoint->report != NULL) {
        (void)checkpoint_finish(checkpoint, 0); // only to wait
        (void)munmap(checkpoint->report, sizeof(*checkpoint->report));
        checkpoint->report = NULL;
    }
}

uint64_t checkpoint_request(struct checkpoint *checkpoint)
{
    checkpoint->is_wanted = true;
    return checkpoint->begun_count + 1;
}

bool checkpoint_is_due(const struct checkpoint *checkpoint, uint64_t now_ms)
{
    const bool is_time = checkpoint->asked_ms != 0 && now_ms >= checkpoint->next_ms;
    return checkpoint->writer == 0 && (is_time || checkpoint->is_wanted);
}

static _Noreturn void run_writer(const struct checkpoint *checkpoint,
                                 const struct checkpoint_source *source,
                                 pid_t recorder)
{
    // The last whole checkpoint stays. An older state must not take the place of what another
    // recording may write there by then, nor a slow disk keep a copy of the recorder for long.
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // cannot fail for a signal
    if (getppid() != recorder) {
        _exit(EXIT_FAILURE);
    }
    (void)!nice(WRITER_NICE); // the program goes first
    enum err err = source->write(source->context, checkpoint->path, checkpoint->report);
    _exit(err == ERR_OK ? EXIT_SUCCESS : EXIT_FAILURE);
}

void checkpoint_start(struct checkpoint *checkpoint,
                      const struct checkpoint_source *source,
                      uint64_t now_ms)
{
    checkpoint->started_ms = now_ms;
    checkpoint->next_ms = now_ms + checkpoint->interval_ms;
    *checkpoint->report = (struct err_info){0};
    const pid_t recorder = getpid();
    const pid_t writer = fork();
    if (writer == 0) {
        run_writer(checkpoint, source, recorder);
    }
    if (writer > 0) {
        checkpoint->writer = writer;
        checkpoint->begun_count++;
        checkpoint->is_wanted = false;
    } // else: no process to be had; the next interval tries again
}

static enum checkpoint_event
writer_ended(struct checkpoint *checkpoint, int status, uint64_t now_ms)
{
    checkpoint->writer = 0;
    checkpoint->ended_count = checkpoint->begun_count;
    const uint64_t took_ms = now_ms - checkpoint->started_ms;
    const uint64_t cheap_ms = took_ms * COST_DIVISOR;
    if (checkpoint->asked_ms > 0) {
        checkpoint->interval_ms = cheap_ms > checkpoint->asked_ms ? cheap_ms : checkpoint->asked_ms;
    }
    const bool had_failed = checkpoint->has_failed;
    checkpoint->has_failed = !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS;
    if (!checkpoint->has_failed) {
        checkpoint->written_count++;
        return had_failed ? CHECKPOINT_RECOVERED : CHECKPOINT_WRITTEN;
    }
    if (checkpoint->report->code == ERR_OK) {
        (void)err_set(checkpoint->report, ERR_IO, "the checkpoint's writer was killed");
    }
    checkpoint->report->text[sizeof(checkpoint->report->text) - 1] = '\0';
    return had_failed ? CHECKPOINT_NOTHING : CHECKPOINT_FAILED;
}

static enum checkpoint_event wait_for(struct checkpoint *checkpoint, int options, uint64_t now_ms)
{
    int status = 0;
    if (checkpoint->writer == 0 || waitpid(checkpoint->writer, &status, options) <= 0) {
        return CHECKPOINT_NOTHING;
    }
    return writer_ended(checkpoint, status, now_ms);
}

enum checkpoint_event checkpoint_poll(struct checkpoint *checkpoint, uint64_t now_ms)
{
    return wait_for(checkpoint, WNOHANG, now_ms);
}

enum checkpoint_event checkpoint_finish(struct checkpoint *checkpoint, uint64_t now_ms)
{
    return wait_for(checkpoint, 0, now_ms);
}

const char *checkpoint_what_stays(const struct checkpoint *checkpoint)
{
    return checkpoint->written_count > 0 ? "the file stays at its last checkpoint"
                                         : "no file has been written";
}
