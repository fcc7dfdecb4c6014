// SPDX-License-Identifier: MIT
#include "recorder/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/os/file.h"
#include "host/text/strbuf.h"
#include "session/session_env.h"

enum {
    STATUS_NOT_RUN = 127,
    CHILD_STACK_BYTES = 64 << 10,
};

// The signals whose disposition the recorder changes, as in launch_signals. Without SIGXFSZ, write
// reports EFBIG, too.
static const struct {
    int number;
    bool ignore;
    bool is_heard; // blocked, and read from the signalfd
} taken_signals[] = {
    {SIGINT, true, true},  {SIGQUIT, true, true},  {SIGTERM, false, true},
    {SIGHUP, false, true}, {SIGCHLD, false, true}, {SIGXFSZ, true, false},
};
_Static_assert(ARRAY_LEN(taken_signals) == ARRAY_LEN(((struct launch_signals *)0)->actions),
               "each has a place");

enum err launch_take_signals(struct launch_signals *saved, int *signal_fd, struct err_info *info)
{
    sigset_t blocked;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction normal = {.sa_handler = SIG_DFL};
    (void)sigemptyset(&blocked); // cannot fail with these arguments, nor can sigaddset
    (void)sigemptyset(&ignore.sa_mask);
    (void)sigemptyset(&normal.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(taken_signals); i++) {
        const int number = taken_signals[i].number;
        if (taken_signals[i].is_heard) {
            (void)sigaddset(&blocked, number);
        }
        // An ignored SIGCHLD would let the kernel reap the program before its status is read.
        if (sigaction(number, taken_signals[i].ignore ? &ignore : &normal, &saved->actions[i]) !=
            0) {
            return err_set_errno(info, errno, "cannot take over signal %d", number);
        }
    }
    if (sigprocmask(SIG_BLOCK, &blocked, &saved->mask) != 0) {
        return err_set_errno(info, errno, "cannot block signals");
    }
    const int fd = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot receive signals");
    }
    *signal_fd = fd;
    return ERR_OK;
}

void launch_restore_signals(const struct launch_signals *saved)
{
    for (size_t i = 0; i < ARRAY_LEN(taken_signals); i++) {
        (void)sigaction(taken_signals[i].number, &saved->actions[i], NULL); // was valid before
    }
    (void)sigprocmask(SIG_SETMASK, &saved->mask, NULL);
}

// `environ` with the two variables. The strings of the others are borrowed.
struct child_environment {
    struct strbuf preload;
    struct strbuf session;
    char **entries;
};

static void child_environment_release(struct child_environment *environment)
{
    strbuf_release(&environment->preload);
    strbuf_release(&environment->session);
    free(environment->entries);
}

// Two pipes between the recorder and the child.
struct child_pipe {
    int report[2]; // the child says why it could not become the program
    int go[2];     // the child waits for it, if it is held
};

static void child_pipe_close(struct child_pipe *pipe)
{
    fd_closep(&pipe->report[0]);
    fd_closep(&pipe->report[1]);
    fd_closep(&pipe->go[0]);
    fd_closep(&pipe->go[1]);
}

static bool is_variable(const char *entry, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static enum err child_environment_make(const struct launch_plan *plan,
                                       struct child_environment *out)
{
    const char *others = getenv("LD_PRELOAD");
    strbuf_printf(&out->preload, "LD_PRELOAD=%s", plan->preload_library);
    if (others != NULL && others[0] != '\0') {
        strbuf_printf(&out->preload, ":%s", others); // first, so that this library calls the others
    }
    strbuf_printf(&out->session, "%s=%s", SESSION_ENV_NAME, plan->session);
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **entries = calloc(count + 3, sizeof(*entries));
    if (entries == NULL || strbuf_result(&out->preload) != ERR_OK ||
        strbuf_result(&out->session) != ERR_OK) {
        free(entries);
        return ERR_NO_MEMORY;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_variable(environ[i], "LD_PRELOAD") && !is_variable(environ[i], SESSION_ENV_NAME)) {
            entries[used++] = environ[i];
        }
    }
    entries[used++] = out->preload.data;
    entries[used] = out->session.data;
    out->entries = entries;
    return ERR_OK;
}

// What the child needs to become the program.
struct child {
    const struct launch_plan *plan;
    char *const *environment;
    const struct child_pipe *pipe;
};

// Run the child. Return its status if it cannot become the program.
static int run_child(void *context)
{
    const struct child *child = context;
    const struct launch_plan *plan = child->plan;
    char go;
    launch_restore_signals(plan->signals);
    if (plan->out_pid != NULL) {
        *plan->out_pid = (uint32_t)getpid();
    }
    if (plan->hold != NULL) {
        (void)close(child->pipe->go[1]); // so that the end of the recorder ends the waiting
        if (read(child->pipe->go[0], &go, sizeof(go)) != (ssize_t)sizeof(go)) {
            return STATUS_NOT_RUN;
        }
    }
    (void)execve(plan->path, plan->argv, child->environment); // returns only to fail
    const int failure = errno;
    (void)!write(child->pipe->report[1], &failure, sizeof(failure)); // else the status must do
    return STATUS_NOT_RUN;
}

// ThreadSanitizer marks its state after a clone as that of a forked child, here the parent's, too.
#ifdef __SANITIZE_THREAD__
#    define CHILD_MAY_SHARE_MEMORY false
#else
#    define CHILD_MAY_SHARE_MEMORY true
#endif

// Start the child. One that is not held has the recorder's memory until its execve, for which the
// recorder waits: to copy the memory would take a tenth of a short run.
static pid_t start_child(struct child *child)
{
    if (child->plan->hold == NULL && CHILD_MAY_SHARE_MEMORY) {
        char *stack = malloc(CHILD_STACK_BYTES);
        const pid_t pid = stack == NULL ? -1
                                        : clone(run_child, stack + CHILD_STACK_BYTES,
                                                CLONE_VM | CLONE_VFORK | SIGCHLD, child);
        const int failure = errno;
        free(stack);
        errno = failure;
        return pid;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(run_child(child));
    }
    return pid;
}

// Wait until the child has either become the program (end of file) or reported why it could not.
static int exec_failure(int report_fd)
{
    int failure = 0;
    ssize_t got = 0;
    do {
        got = read(report_fd, &failure, sizeof(failure));
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(failure) ? failure : 0;
}

static enum err hold_child(const struct launch_plan *plan,
                           pid_t pid,
                           const struct child_pipe *pipe,
                           struct err_info *info)
{
    const char go = 1;
    TRY(plan->hold->begin(plan->hold->context, pid, info));
    return write(pipe->go[1], &go, sizeof(go)) == (ssize_t)sizeof(go)
               ? plan->hold->run(plan->hold->context, info)
               : err_set_errno(info, errno, "cannot start '%s'", plan->path);
}

// Wait until the child is the program.
static enum err await_program(const struct launch_plan *plan,
                              pid_t pid,
                              struct child_pipe *pipe,
                              struct err_info *info)
{
    const enum err held = plan->hold != NULL ? hold_child(plan, pid, pipe, info) : ERR_OK;
    if (held != ERR_OK) {
        (void)kill(pid, SIGKILL); // it may have ended
    }
    fd_closep(&pipe->report[1]);
    const int failure = exec_failure(pipe->report[0]);
    if (held == ERR_OK && failure == 0) {
        return ERR_OK;
    }
    (void)waitpid(pid, NULL, 0); // it has ended, and may have been waited for
    return failure != 0 ? err_set_errno(info, failure, "cannot run '%s'", plan->path) : held;
}

enum err launch_program(const struct launch_plan *plan, struct launched *out, struct err_info *info)
{
    CLEANUP(child_environment_release) struct child_environment environment = {0};
    CLEANUP(child_pipe_close) struct child_pipe pipe = {.report = {-1, -1}, .go = {-1, -1}};
    TRY(plan->preload_library != NULL ? child_environment_make(plan, &environment) : ERR_OK);
    if (pipe2(pipe.report, O_CLOEXEC) != 0 ||
        (plan->hold != NULL && pipe2(pipe.go, O_CLOEXEC) != 0)) {
        return err_set_errno(info, errno, "cannot start '%s'", plan->path);
    }
    struct child child = {.plan = plan,
                          .environment =
                              plan->preload_library != NULL ? environment.entries : environ,
                          .pipe = &pipe};
    const pid_t pid = start_child(&child);
    if (pid < 0) {
        return err_set_errno(info, errno, "cannot start '%s'", plan->path);
    }
    TRY(await_program(plan, pid, &pipe, info));
    out->pid = pid;
    out->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return ERR_OK;
}
