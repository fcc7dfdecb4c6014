// SPDX-License-Identifier: MIT
// way_probe: see way_probe.h.
#include "cli/probe/way_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/probe/probe_work.h"
#include "formats/import/input_file.h"
#include "recording/read/recording_reader.h"

enum {
    SAID_BYTES_MAX = 16 * 1024,
    STACK_FRAMES_MIN = 3, // malloc, allocate, main or a thread's function
};

const struct way_probe way_probes[] = {
    {.name = "a program from its start"},
    {.name = "... without the preloaded library", .option = "--all-allocators"},
    {.name = "a static program", .is_static = true},
    {.name = "a sample of a program", .option = "--sample=64KiB", .is_sampled = true},
    {.name = "a running program", .is_attached = true},
    {.name = "a running static program", .is_static = true, .is_attached = true},
};
const size_t way_probe_count = ARRAY_LEN(way_probes);

// A child process, in a group of its own: what it has started ends with it.
struct child {
    pid_t pid; // 0: none, or it has been waited for
};

static void child_end(struct child *child)
{
    if (child->pid > 0) {
        (void)kill(-child->pid, SIGKILL); // it may have ended
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        child->pid = 0;
    }
}

static void destroy_attributes(posix_spawnattr_t *attributes)
{
    (void)posix_spawnattr_destroy(attributes); // cannot fail
}

static void destroy_actions(posix_spawn_file_actions_t *actions)
{
    (void)posix_spawn_file_actions_destroy(actions); // cannot fail
}

// Start a program, which does not change the words. Its stderr is `err_fd`, or /dev/null if that is
// negative.
static MUST_USE enum err
child_start(const char *const *words, int err_fd, struct child *out, struct err_info *info)
{
    CLEANUP(destroy_attributes) posix_spawnattr_t attributes;
    CLEANUP(destroy_actions) posix_spawn_file_actions_t actions;
    // These fail for want of memory only; glibc's never do.
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_init(&actions);
    const char *null = "/dev/null";
    const bool is_ready =
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, null, O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, null, O_WRONLY, 0) == 0 &&
        (err_fd >= 0
             ? posix_spawn_file_actions_adddup2(&actions, err_fd, STDERR_FILENO)
             : posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, null, O_WRONLY, 0)) == 0;
    pid_t pid = 0;
    const int problem = is_ready ? posix_spawn(&pid, words[0], &actions, &attributes,
                                               (char *const *)(uintptr_t)words, environ)
                                 : ENOMEM;
    if (problem != 0) {
        return err_set_errno(info, problem, "cannot start '%.200s'", words[0]);
    }
    out->pid = pid;
    return ERR_OK;
}

// Append what comes from `fd` until its end. Return false at the deadline.
static bool read_until_end(int fd, uint64_t deadline_ms, struct strbuf *out)
{
    for (;;) {
        const uint64_t now_ms = clock_monotonic_ms();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        char bytes[1024];
        if (now_ms >= deadline_ms) {
            return false;
        }
        if (poll(&wait, 1, (int)(deadline_ms - now_ms)) <= 0) {
            continue; // the deadline, or a signal
        }
        const ssize_t got = read(fd, bytes, sizeof(bytes));
        if (got <= 0) {
            return true;
        }
        if (out->len < SAID_BYTES_MAX) {
            strbuf_append(out, bytes, (size_t)got);
        }
    }
}

// What is in the recording of what the program allocated with one size.
struct found_blocks {
    uint64_t allocations;
    uint64_t frees;
    uint64_t frames; // of the shortest stack
};

static struct found_blocks find_blocks(const struct recording *recording, uint64_t bytes)
{
    struct found_blocks found = {.frames = UINT64_MAX};
    for (size_t i = 0; i < recording->row_count; i++) {
        const struct rec_row *row = &recording->rows[i];
        if (row->allocations == 0 || row->allocated_bytes != row->allocations * bytes) {
            continue;
        }
        uint64_t frames = 0;
        for (uint32_t at = row->node; at != REC_NONE; at = recording->nodes[at].parent) {
            frames++;
        }
        found.allocations += row->allocations;
        found.frees += row->frees;
        found.frames = frames < found.frames ? frames : found.frames;
    }
    return found;
}

// Return whether all blocks of one part of the program were found; append what is missing.
static bool has_part(const struct recording *recording,
                     const char *name,
                     struct found_blocks wanted,
                     uint64_t bytes,
                     struct strbuf *out)
{
    const struct found_blocks found = find_blocks(recording, bytes);
    if (found.allocations == wanted.allocations && found.frees == wanted.frees) {
        if (found.frames >= wanted.frames) {
            return true;
        }
        strbuf_printf(out, "%sthe stacks of %s are cut off", out->len > 0 ? "; " : "", name);
        return false;
    }
    strbuf_printf(
        out, "%s%s has %" PRIu64 " of %" PRIu64 " allocations and %" PRIu64 " of %" PRIu64 " frees",
        out->len > 0 ? "; " : "", name, found.allocations, wanted.allocations, found.frees,
        wanted.frees);
    return false;
}

static bool has_all_parts(const struct recording *recording, struct strbuf *out)
{
    const struct found_blocks program = {PROBE_MAIN_COUNT, PROBE_MAIN_COUNT - PROBE_MAIN_KEPT,
                                         STACK_FRAMES_MIN};
    const struct found_blocks thread = {PROBE_THREAD_COUNT, PROBE_THREAD_COUNT, STACK_FRAMES_MIN};
    const struct found_blocks child = {PROBE_CHILD_COUNT, PROBE_CHILD_COUNT, STACK_FRAMES_MIN};
    const bool has_program = has_part(recording, "the program", program, PROBE_MAIN_BYTES, out);
    const bool has_thread = has_part(recording, "its thread", thread, PROBE_THREAD_BYTES, out);
    const bool has_child = has_part(recording, "its child", child, PROBE_CHILD_BYTES, out);
    return has_program && has_thread && has_child;
}

// The numbers of all allocations are exact, those of stacks are not.
static bool has_sampled_total(const struct recording *recording, struct strbuf *out)
{
    const uint64_t wanted = PROBE_MAIN_COUNT + PROBE_THREAD_COUNT + PROBE_CHILD_COUNT;
    const struct rec_totals *totals = &recording->totals;
    const uint64_t found =
        totals->allocations - totals->represented_allocations + totals->unsampled_allocations;
    if (found >= wanted && found < 2 * wanted) {
        return true;
    }
    strbuf_printf(out, "there are %" PRIu64 " of %" PRIu64 " allocations", found, wanted);
    return false;
}

// Compare the recording at `path` with the program.
static void judge_recording(const struct way_probe *way,
                            const char *path,
                            struct way_result *out,
                            struct err_info *info)
{
    CLEANUP(recording_release) struct recording recording = {0};
    struct recording_open_result opened;
    if (input_open_recording(path, NULL, &recording, &opened, NULL, info) != ERR_OK) {
        out->verdict = WAY_FAILS;
        strbuf_append_text(&out->detail, info->text);
        return;
    }
    const bool is_complete = way->is_sampled ? has_sampled_total(&recording, &out->detail)
                                             : has_all_parts(&recording, &out->detail);
    out->verdict = is_complete ? WAY_WORKS : WAY_FAILS;
    if (is_complete) {
        strbuf_append_text(&out->detail, way->is_sampled ? "the number of all allocations"
                                                         : "all allocations, a thread and a child");
        strbuf_append_text(&out->detail, recording.memory_snapshot_count > 0
                                             ? ", resident memory"
                                             : "; no resident memory");
    }
}

// Append the recorder's first sentence, without its name.
static void append_said(const struct strbuf *said, struct strbuf *out)
{
    const char *text = said->len > 0 ? strbuf_text(said) : "the recorder has said nothing\n";
    static const char head[] = "cairn: ";
    text += strncmp(text, head, sizeof(head) - 1) == 0 ? sizeof(head) - 1 : 0;
    strbuf_append(out, text, strcspn(text, "\n"));
}

// A way that is being tried. Texts are borrowed.
struct probe_run {
    const struct way_probe *way;
    const char *path; // of the recording
    uint64_t deadline_ms;
    char self[PATH_MAX];    // this executable
    char program[PATH_MAX]; // the bundled program; it may not exist
};

// Start the recorder, whose stderr is `err_fd`. `target` is the program that runs already, if any.
static MUST_USE enum err start_recorder(const struct probe_run *run,
                                        const struct child *target,
                                        int err_fd,
                                        struct child *out,
                                        struct err_info *info)
{
    const char *words[10] = {run->self, "record", "--no-config", "-q", "-o", run->path};
    char pid[16];
    size_t count = 6;
    (void)snprintf(pid, sizeof(pid), "%d", (int)target->pid); // fits
    words[count] = run->way->option;
    count += run->way->option != NULL;
    words[count++] = run->way->is_attached ? "-p" : "--";
    words[count++] = run->way->is_attached ? pid : run->program;
    return child_start(words, err_fd, out, info);
}

// A busy machine can be late without any fault.
static void append_lateness(struct strbuf *out)
{
    double load;
    strbuf_append_text(out, "not recorded in time");
    if (getloadavg(&load, 1) == 1) {
        strbuf_printf(out, ", at a load of %.1f on %ld processors", load,
                      sysconf(_SC_NPROCESSORS_ONLN));
    }
}

// Run the recorder to its end, and judge the recording.
static MUST_USE enum err record_way(const struct probe_run *run,
                                    const struct child *target,
                                    struct way_result *out,
                                    struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf said = {0};
    CLEANUP(child_end) struct child recorder = {0};
    int ends[2];
    int status = -1;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return err_set_errno(info, errno, "cannot create a pipe");
    }
    const enum err problem = start_recorder(run, target, ends[1], &recorder, info);
    (void)close(ends[1]);
    const bool has_ended = problem == ERR_OK && read_until_end(ends[0], run->deadline_ms, &said);
    (void)close(ends[0]);
    TRY(problem);
    if (has_ended && waitpid(recorder.pid, &status, 0) == recorder.pid) {
        recorder.pid = 0;
    }
    if (status == 0) {
        judge_recording(run->way, run->path, out, info);
        return ERR_OK;
    }
    out->verdict = WAY_FAILS;
    if (has_ended) {
        append_said(&said, &out->detail);
    } else {
        append_lateness(&out->detail);
    }
    return strbuf_result(&out->detail);
}

// Find this executable, and the program beside the preloaded library.
static MUST_USE enum err find_files(struct probe_run *run, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};
    if (realpath("/proc/self/exe", run->self) == NULL) {
        return err_set_errno(info, errno, "cannot read /proc/self/exe");
    }
    strbuf_append(&path, run->self, (size_t)(strrchr(run->self, '/') - run->self));
    strbuf_append_text(&path, "/../lib/cairn/probe_program");
    strbuf_append_text(&path, run->way->is_static ? "_static" : "");
    TRY(strbuf_result(&path));
    if (realpath(strbuf_text(&path), run->program) == NULL) {
        (void)snprintf(run->program, PATH_MAX, "%s", strbuf_text(&path)); // only for a message
    }
    return ERR_OK;
}

enum err way_probe_run(const struct way_probe *way,
                       const char *path,
                       uint64_t deadline_ms,
                       struct way_result *out,
                       struct err_info *info)
{
    CLEANUP(way_result_release) struct way_result result = {.verdict = WAY_UNTRIED};
    CLEANUP(child_end) struct child target = {0};
    struct probe_run run = {.way = way, .path = path, .deadline_ms = deadline_ms};
    TRY(find_files(&run, info));
    if (access(run.program, X_OK) != 0) {
        strbuf_printf(&result.detail, "there is no %s", run.program);
    } else {
        const char *words[] = {run.program, "wait", NULL};
        TRY(way->is_attached ? child_start(words, -1, &target, info) : ERR_OK);
        TRY(record_way(&run, &target, &result, info));
        (void)unlink(path); // it may not exist
    }
    TRY(strbuf_result(&result.detail));
    *out = TAKE(result);
    return ERR_OK;
}

void way_result_release(struct way_result *result)
{
    strbuf_release(&result->detail);
}
