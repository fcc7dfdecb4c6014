// SPDX-License-Identifier: MIT
#include "recorder/output/checkpoint.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "host/os/file.h"

enum {
    FIRST_MS = 1000,     // so that a recorder that is killed early leaves a file
    GROWTH = 2,          // each interval is so many times the previous one, up to the requested one
    COST_DIVISOR = 50,   // processor time of a checkpoint: at most this part of an interval
    TIME_DIVISOR = 4,    // elapsed time, with a copy of the recorder in memory: at most this part,
    SLOW_MAX_MS = 10000, // but a slow disk makes no interval longer than this
    WRITER_NICE = 10,
    NO_WRITER = -1, // fork has failed, which is still to be reported
};

static uint64_t first_interval(uint64_t asked_ms)
{
    return min_u64(asked_ms, FIRST_MS);
}

enum err checkpoint_init(struct checkpoint *checkpoint, const char *path, uint64_t interval_ms)
{
    void *report = mmap(NULL, sizeof(struct err_info), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) {
        return ERR_NO_MEMORY;
    }
    *checkpoint = (struct checkpoint){.path = path,
                                      .asked_ms = interval_ms,
                                      .interval_ms = first_interval(interval_ms),
                                      .next_ms = first_interval(interval_ms),
                                      .report = report};
    return ERR_OK;
}

void checkpoint_release(struct checkpoint *checkpoint)
{
    if (checkpoint->report != NULL) {
        (void)checkpoint_finish(checkpoint, CHECKPOINT_GRACE_MS, 0); // only to wait
        (void)munmap(checkpoint->report, sizeof(*checkpoint->report));
        checkpoint->report = NULL;
    }
}

uint64_t checkpoint_request(struct checkpoint *checkpoint, uint64_t now_ms)
{
    checkpoint->is_wanted = true;
    checkpoint->wanted_ms = now_ms;
    return checkpoint->begun_count + 1;
}

void checkpoint_expect(struct checkpoint *checkpoint, uint64_t processor_ms)
{
    const uint64_t least_ms = checkpoint->asked_ms != 0 ? processor_ms * COST_DIVISOR : 0;
    if (checkpoint->begun_count == 0) {
        checkpoint->next_ms = max_u64(checkpoint->next_ms, min_u64(least_ms, SLOW_MAX_MS));
    }
    checkpoint->interval_ms = max_u64(checkpoint->interval_ms, least_ms);
}

bool checkpoint_is_due(const struct checkpoint *checkpoint, uint64_t now_ms, uint64_t read_ms)
{
    const bool is_time = checkpoint->asked_ms != 0 && now_ms >= checkpoint->next_ms;
    return checkpoint->writer == 0 &&
           (is_time || (checkpoint->is_wanted && read_ms > checkpoint->wanted_ms));
}

static _Noreturn void run_writer(const struct checkpoint *checkpoint,
                                 const struct checkpoint_source *source,
                                 pid_t recorder)
{
    // The last whole checkpoint stays. An older state must not replace a file that another
    // recording may write there by then, nor may a slow disk keep a copy of the recorder for long.
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // cannot fail for a signal
    if (getppid() != recorder) {
        _exit(EXIT_FAILURE);
    }
    (void)!nice(WRITER_NICE); // the program has priority
    enum err err = source->write(source->context, checkpoint->path, checkpoint->report);
    checkpoint->report->code = err; // also of a failure without a sentence (err_text)
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
    if (writer < 0) {
        (void)err_set_errno(checkpoint->report, errno,
                            "cannot start a process to write a checkpoint"); // it is in the report
    }
    checkpoint->writer = writer < 0 ? NO_WRITER : writer;
    checkpoint->begun_count++;
    checkpoint->is_wanted = false;
}

uint64_t
checkpoint_interval(uint64_t asked_ms, uint64_t last_ms, uint64_t processor_ms, uint64_t took_ms)
{
    const uint64_t grown_ms = min_u64(asked_ms, last_ms * GROWTH);
    const uint64_t slow_ms = min_u64(took_ms * TIME_DIVISOR, max_u64(asked_ms, SLOW_MAX_MS));
    return max_u64(grown_ms, max_u64(processor_ms * COST_DIVISOR, slow_ms));
}

static uint64_t milliseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * MS_PER_S + (uint64_t)time.tv_usec / US_PER_MS;
}

static enum checkpoint_event note_end(struct checkpoint *checkpoint, bool is_written)
{
    const bool had_failed = checkpoint->has_failed;
    checkpoint->writer = 0;
    checkpoint->ended_count = checkpoint->begun_count;
    checkpoint->has_failed = !is_written;
    if (is_written) {
        checkpoint->written_count++;
        return had_failed ? CHECKPOINT_RECOVERED : CHECKPOINT_WRITTEN;
    }
    if (checkpoint->report->code == ERR_OK) {
        (void)err_set(checkpoint->report, ERR_IO, "the checkpoint's writer was killed");
    }
    checkpoint->report->text[sizeof(checkpoint->report->text) - 1] = '\0';
    return had_failed ? CHECKPOINT_NOTHING : CHECKPOINT_FAILED;
}

static enum checkpoint_event
writer_ended(struct checkpoint *checkpoint, int status, const struct rusage *usage, uint64_t now_ms)
{
    checkpoint->processor_ms = milliseconds(usage->ru_utime) + milliseconds(usage->ru_stime);
    if (checkpoint->asked_ms > 0) {
        checkpoint->interval_ms =
            checkpoint_interval(checkpoint->asked_ms, checkpoint->interval_ms,
                                checkpoint->processor_ms, now_ms - checkpoint->started_ms);
    }
    return note_end(checkpoint, WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
}

static enum checkpoint_event wait_for(struct checkpoint *checkpoint, int options, uint64_t now_ms)
{
    int status = 0;
    struct rusage usage = {0};
    if (checkpoint->writer == NO_WRITER) {
        return note_end(checkpoint, false);
    }
    if (checkpoint->writer == 0 || wait4(checkpoint->writer, &status, options, &usage) <= 0) {
        return CHECKPOINT_NOTHING;
    }
    return writer_ended(checkpoint, status, &usage, now_ms);
}

enum checkpoint_event checkpoint_poll(struct checkpoint *checkpoint, uint64_t now_ms)
{
    return wait_for(checkpoint, WNOHANG, now_ms);
}

// Kill the writer unless it ends in time.
static void limit_writer(pid_t writer, int grace_ms)
{
    CLEANUP(fd_closep) int pidfd = (int)syscall(SYS_pidfd_open, writer, 0);
    struct pollfd its_end = {.fd = pidfd, .events = POLLIN};
    if (pidfd >= 0 && poll(&its_end, 1, grace_ms) != 1) { // signals are blocked (signalfd)
        (void)kill(writer, SIGKILL);                      // ours, and not reaped
    }
}

enum checkpoint_event
checkpoint_finish(struct checkpoint *checkpoint, int grace_ms, uint64_t now_ms)
{
    if (checkpoint->writer > 0) {
        limit_writer(checkpoint->writer, grace_ms);
    }
    return wait_for(checkpoint, 0, now_ms);
}

const char *checkpoint_what_stays(const struct checkpoint *checkpoint)
{
    struct stat status;
    if (checkpoint->written_count == 0) {
        return "no file has been written";
    }
    return stat(checkpoint->path, &status) == 0 && S_ISREG(status.st_mode)
               ? "the file keeps its last checkpoint"
               : "the file with its last checkpoint is not there any more";
}
