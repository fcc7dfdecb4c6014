// SPDX-License-Identifier: MIT
#include "cli/top/top_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/options/command.h"
#include "cli/options/output_name.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "host/os/proc_file.h"
#include "host/text/number.h"
#include "recorder/control/control_client.h"

enum {
    COMPLAINT_BYTES_MAX = 64 << 10,
    EXIT_STATUS_SIGNAL = 128, // what a shell adds to a signal's number
    RETRY_MS = 20,
};

void top_run_release(struct top_run *run)
{
    fd_closep(&run->recorder_fd);
    strbuf_release(&run->path);
    strbuf_release(&run->output);
}

// Append the value of `key` in a status reply, lines of "key<TAB>value".
static void append_value(const char *reply, const char *key, struct strbuf *out)
{
    const size_t key_bytes = strlen(key);
    for (const char *line = reply; *line != '\0'; line += strspn(line, "\n")) {
        const size_t line_bytes = strcspn(line, "\n");
        if (line_bytes > key_bytes && line[key_bytes] == '\t' &&
            strncmp(line, key, key_bytes) == 0) {
            strbuf_append(out, line + key_bytes + 1, line_bytes - key_bytes - 1);
        }
        line += line_bytes;
    }
}

static uint64_t number_value(const char *reply, const char *key)
{
    CLEANUP(strbuf_release) struct strbuf value = {0};
    append_value(reply, key, &value);
    return number_field(strbuf_text(&value));
}

// Take what a recorder says about its recording.
static MUST_USE enum err take_status(struct top_run *run, const char *reply)
{
    run->recorder = (pid_t)number_value(reply, "recorder_pid");
    run->program = (uint32_t)number_value(reply, "program_pid");
    strbuf_clear(&run->path);
    append_value(reply, "file", &run->path);
    fd_closep(&run->recorder_fd);
    // Without it, the last figures may miss what is written after the recorder's socket is closed.
    run->recorder_fd = (int)syscall(SYS_pidfd_open, run->recorder, 0);
    return strbuf_result(&run->path);
}

// Find the running recording `name`, a file or a process id. ERR_NOT_FOUND if there is none.
static MUST_USE enum err find_recorder(struct top_run *run, const char *name, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    TRY(control_ask(name, "status", NULL, &reply, info));
    return take_status(run, strbuf_text(&reply));
}

// Append the name of the recording that the recorder `pid` writes.
static MUST_USE enum err append_path(const struct top_run_options *options,
                                     const char *program,
                                     pid_t pid,
                                     struct strbuf *out,
                                     struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf pattern = {0};
    output_name_append_pattern(&pattern, options->output, program);
    TRY(strbuf_result(&pattern));
    return output_name_expand(strbuf_text(&pattern), (uint32_t)pid, out, info);
}

// Append the name of the file for the output of the program.
static void
append_output(const struct top_run_options *options, const char *path, struct strbuf *out)
{
    static const char suffix[] = ".cairn";
    if (options->program_output != NULL) {
        strbuf_append_text(out, options->program_output);
        return;
    }
    const size_t suffix_bytes = screen_ends_with(path, suffix) ? sizeof(suffix) - 1 : 0;
    strbuf_append(out, path, strlen(path) - suffix_bytes);
    strbuf_append_text(out, ".output");
}

// In the new process: leave the terminal, for a file and an empty input.
static MUST_USE enum err leave_terminal(const char *output, struct err_info *info)
{
    CLEANUP(fd_closep) int out = -1;
    CLEANUP(fd_closep) int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (in < 0) {
        return err_set_errno(info, errno, "cannot open '/dev/null'");
    }
    TRY(file_create(output, FILE_MODE_PRIVATE, &out, info));
    (void)setsid();               // cannot fail in a new process
    (void)dup2(in, STDIN_FILENO); // these cannot fail for open descriptors
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(out, STDERR_FILENO);
    return ERR_OK;
}

// In the new process: become the recorder. Its name of the recording has % only as %%.
static MUST_USE enum err
become_recorder(const struct top_run_options *options, const char *program, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};
    CLEANUP(strbuf_release) struct strbuf output = {0};
    CLEANUP(strbuf_release) struct strbuf pattern = {0};
    char pid[16];
    size_t count = 0;
    while (options->argv != NULL && options->argv[count] != NULL) {
        count++;
    }
    TRY(append_path(options, program, getpid(), &path, info));
    append_output(options, strbuf_text(&path), &output);
    output_name_append_path(&pattern, strbuf_text(&path));
    (void)snprintf(pid, sizeof(pid), "%" PRIu32, options->pid); // fits
    const char *const words[] = {"cairn",
                                 "record",
                                 "--no-config",
                                 "-q",
                                 "-o",
                                 strbuf_text(&pattern),
                                 options->pid != 0 ? "-p" : "--",
                                 pid};
    const size_t word_count = options->pid != 0 ? ARRAY_LEN(words) : ARRAY_LEN(words) - 1;
    char **argv = calloc(word_count + count + 1, sizeof(*argv)); // until exec
    if (argv == NULL || output.failed || pattern.failed) {
        return ERR_NO_MEMORY;
    }
    memcpy(argv, words, word_count * sizeof(*argv));
    memcpy(argv + word_count, options->argv != NULL ? options->argv : argv, count * sizeof(*argv));
    TRY(leave_terminal(strbuf_text(&output), info));
    (void)execv("/proc/self/exe", argv);
    return err_set_errno(info, errno, "cannot start the recorder");
}

// In the new process: become the recorder once the other one says so, or send the reason why not,
// in place of the silence of a descriptor that exec closes.
static _Noreturn void
run_recorder(const struct top_run_options *options, const char *program, int answer)
{
    struct err_info info = {0};
    char go;
    if (read(answer, &go, sizeof(go)) != (ssize_t)sizeof(go)) {
        _exit(STATUS_USAGE); // the other one has ended
    }
    if (become_recorder(options, program, &info) == ERR_NO_MEMORY) {
        (void)err_set(&info, ERR_NO_MEMORY, "%s", "not enough memory"); // sent below
    }
    (void)!write(answer, &info, sizeof(info)); // the status says as much
    _exit(STATUS_USAGE);
}

// Wait for the end of the recorder for some milliseconds. Return whether it has ended; it ends as
// the program did.
static bool reap_program(struct top_run *run, int patience_ms)
{
    int ended = 0;
    struct pollfd end = {.fd = run->recorder_fd, .events = POLLIN};
    (void)poll(&end, 1, patience_ms); // the reason of its end is irrelevant
    if (!run->is_child || waitpid(run->recorder, &ended, WNOHANG) != run->recorder) {
        return false;
    }
    run->is_child = false;
    run->recorder = 0;
    run->exit_status =
        WIFSIGNALED(ended) ? EXIT_STATUS_SIGNAL + WTERMSIG(ended) : WEXITSTATUS(ended);
    return true;
}

// What distinguishes a file from one that replaces it; all 0 if there is none.
struct identity {
    dev_t device;
    ino_t inode;
    struct timespec changed;
};

static struct identity identity_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0
               ? (struct identity){status.st_dev, status.st_ino, status.st_mtim}
               : (struct identity){0};
}

static bool is_same(struct identity a, struct identity b)
{
    return a.device == b.device && a.inode == b.inode && a.changed.tv_sec == b.changed.tv_sec &&
           a.changed.tv_nsec == b.changed.tv_nsec;
}

// Print a sentence that ends with a file name, made safe.
static void say_path(const char *before, const char *path)
{
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    screen_append(&safe, path);
    (void)fprintf(stderr, "cairn: %s%s\n", before, strbuf_text(&safe));
}

// Print what a recorder said that has made no recording, and remove the file.
static void print_complaint(const char *path)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct stat status;
    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode)) {
        say_path("no recording was made; the reason is in ", path);
    } else if (file_read(path, COMPLAINT_BYTES_MAX, &text, NULL) == ERR_OK) {
        (void)fwrite(strbuf_text(&text), 1, text.len, stderr); // no other place to report an error
        (void)unlink(path);                                    // at worst it stays
    }
}

// Wait until the new process has become the recorder. Fail with the reason why it did not.
static MUST_USE enum err read_recorder(struct top_run *run, int answer, struct err_info *info)
{
    struct err_info reason = {0};
    ssize_t got;
    while ((got = read(answer, &reason, sizeof(reason))) < 0 && errno == EINTR) {
    }
    if (got != (ssize_t)sizeof(reason)) {
        return ERR_OK;
    }
    (void)waitpid(run->recorder, NULL, 0); // it ends at once
    run->recorder = 0;
    run->is_child = false;
    return err_set(info, reason.code, "%s", reason.text);
}

// Start a recorder. `before` is what it finds at the place of its recording.
static MUST_USE enum err fork_recorder(struct top_run *run,
                                       const struct top_run_options *options,
                                       const char *program,
                                       struct identity *before,
                                       struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};
    int answer[2];
    TRY(append_path(options, program, getpid(), &path, info)); // a bad pattern is an error here
    run->is_attached = options->pid != 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, answer) != 0) {
        return err_set_errno(info, errno, "cannot start the recorder");
    }
    run->recorder = fork();
    const int problem = errno;
    if (run->recorder == 0) {
        (void)close(answer[0]);
        run_recorder(options, program, answer[1]);
    }
    (void)close(answer[1]); // the other process has it
    CLEANUP(fd_closep) int heard = answer[0];
    if (run->recorder < 0) {
        run->recorder = 0;
        return err_set_errno(info, problem, "cannot start the recorder");
    }
    run->is_child = true;
    TRY(append_path(options, program, run->recorder, &run->path, info));
    *before = identity_of(strbuf_text(&run->path));
    (void)!send(heard, "", 1, MSG_NOSIGNAL); // a short run may be over at once
    TRY(read_recorder(run, heard, info));
    run->recorder_fd = (int)syscall(SYS_pidfd_open, run->recorder, 0);
    append_output(options, strbuf_text(&run->path), &run->output);
    return strbuf_result(&run->output);
}

// Start a recorder, and wait until it answers or has ended.
static MUST_USE enum err start_recorder(struct top_run *run,
                                        const struct top_run_options *options,
                                        const char *program,
                                        int *status,
                                        struct err_info *info)
{
    struct identity before = {0};
    TRY(fork_recorder(run, options, program, &before, info));
    for (;;) {
        CLEANUP(strbuf_release) struct strbuf reply = {0};
        struct err_info trouble = {0};
        if (control_ask_recorder(run->recorder, "status", NULL, &reply, &trouble) == ERR_OK) {
            return take_status(run, strbuf_text(&reply));
        }
        if (!reap_program(run, RETRY_MS)) {
            continue;
        }
        *status = run->exit_status;
        if (!is_same(before, identity_of(strbuf_text(&run->path)))) {
            return ERR_OK; // a short run
        }
        print_complaint(strbuf_text(&run->output));
        return ERR_DEAD;
    }
}

static MUST_USE enum err open_pid(struct top_run *run,
                                  const struct top_run_options *options,
                                  int *status,
                                  struct err_info *info)
{
    char name[16];
    char path[PATH_MAX];
    (void)snprintf(name, sizeof(name), "%" PRIu32, options->pid); // fits
    const enum err found = find_recorder(run, name, info);
    if (found != ERR_NOT_FOUND) {
        return found;
    }
    const bool is_known = proc_file_executable((pid_t)options->pid, path);
    *info = (struct err_info){0};
    return start_recorder(run, options, is_known ? path : "process", status, info);
}

enum err top_run_open(struct top_run *run,
                      const struct top_run_options *options,
                      int *status,
                      struct err_info *info)
{
    *status = STATUS_USAGE;
    if (options->argv != NULL) {
        return start_recorder(run, options, options->argv[0], status, info);
    }
    if (options->pid != 0) {
        return open_pid(run, options, status, info);
    }
    const enum err found = find_recorder(run, options->file, info);
    if (found == ERR_NOT_FOUND && access(options->file, F_OK) == 0) {
        *info = (struct err_info){0};
        strbuf_append_text(&run->path, options->file);
        return strbuf_result(&run->path);
    }
    return found;
}

enum err top_run_end_program(const struct top_run *run, struct err_info *info)
{
    if (run->program == 0 || kill((pid_t)run->program, SIGTERM) != 0) {
        return err_set_errno(info, run->program == 0 ? ESRCH : errno, "cannot end the program");
    }
    return ERR_OK;
}

// Detach from a process that we have attached to, and wait until its file is written.
static void detach_run(struct top_run *run)
{
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    struct err_info info = {0};
    if (control_ask_recorder(run->recorder, "detach", NULL, &reply, &info) == ERR_OK) {
        (void)reap_program(run, CONTROL_PATIENCE_MS); // it ends by itself
    }
    (void)fprintf(stderr, "cairn: process %" PRIu32 " runs on and is not recorded any more\n",
                  run->program);
}

int top_run_leave(struct top_run *run, bool has_ended)
{
    struct stat output;
    if (run->output.len == 0) {
        return STATUS_OK; // the recording was not started here
    }
    if (run->is_child && !reap_program(run, has_ended ? CONTROL_PATIENCE_MS : 0)) {
        if (run->is_attached) {
            detach_run(run);
        } else {
            (void)fprintf(stderr,
                          "cairn: process %" PRIu32
                          " and its recording go on; 'cairn top -p %" PRIu32 "' shows them again\n",
                          run->program, run->program);
        }
    }
    say_path("the recording is ", strbuf_text(&run->path));
    if (!run->is_child && lstat(strbuf_text(&run->output), &output) == 0 &&
        S_ISREG(output.st_mode) && output.st_size == 0) {
        (void)unlink(strbuf_text(&run->output)); // at worst an empty file stays
    } else {
        say_path("the output of the program is in ", strbuf_text(&run->output));
    }
    return !run->is_child && !run->is_attached ? run->exit_status : STATUS_OK;
}
