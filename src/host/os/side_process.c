// SPDX-License-Identifier: MIT
#include "host/os/side_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"

enum {
    SIDE_NICE = 5, // less than a writer of checkpoints has: it reads what that writes
};

// --- the side process ---------------------------------------------------------------------------

// Leave the terminal and its signals to the program, and yield to it.
static void stand_back(const char *name)
{
    static const int ignored[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGTSTP};
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++) {
        (void)sigaction(ignored[i], &(struct sigaction){.sa_handler = SIG_IGN}, NULL); // valid
    }
    (void)prctl(PR_SET_NAME, name); // for ps; cannot fail
    (void)!nice(SIDE_NICE);
    // Without this the kernel may choose the program.
    CLEANUP(fd_closep) int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    (void)!write(score, "1000", 4);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++) {
        (void)dup2(null, fd); // else the streams stay open until the recorder ends
    }
}

static void limit_memory(uint64_t max_bytes)
{
    struct rlimit limit;
    if (max_bytes != 0 && getrlimit(RLIMIT_DATA, &limit) == 0) {
        limit.rlim_cur = min_u64(max_bytes, limit.rlim_cur);
        (void)setrlimit(RLIMIT_DATA, &limit); // at most what it was, which is always allowed
    }
}

void side_process_reply(int channel, const struct err_info *result)
{
    (void)send(channel, result, sizeof(*result), MSG_NOSIGNAL); // the recorder may have ended
}

static _Noreturn void run_side(const struct side_process_work *work, int channel)
{
    struct err_info info = {0};
    stand_back(work->name);
    limit_memory(work->memory_max_bytes);
    const enum err err = work->begin(work->context, &info);
    side_process_reply(channel, &info);
    if (err == ERR_OK) {
        work->run(work->context, channel);
    }
    _exit(err == ERR_OK ? EXIT_SUCCESS : EXIT_FAILURE);
}

bool side_process_receive(int channel, struct side_message *out)
{
    for (;;) {
        const ssize_t len = recv(channel, out, sizeof(*out), 0);
        if (len == (ssize_t)sizeof(*out)) {
            out->path[sizeof(out->path) - 1] = '\0';
            return true;
        }
        if (len >= 0 || errno != EINTR) {
            return false;
        }
    }
}

// --- the recorder's side ------------------------------------------------------------------------

// Kill it, unless it has ended. Return its status.
static int end(struct side_process *side)
{
    int status = 0;
    if (side->process > 0) { // else kill and waitpid would mean the whole process group
        (void)kill(side->process, SIGKILL); // ours, and not reaped
        (void)waitpid(side->process, &status, 0);
    }
    fd_closep(&side->channel);
    *side = (struct side_process){.channel = -1};
    return status;
}

enum err side_process_start(const struct side_process_work *work,
                            struct side_process *out,
                            struct err_info *info)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return err_set_errno(info, errno, "cannot start %s", work->what);
    }
    const pid_t process = fork();
    (void)close(ends[process != 0]); // the other process has it
    if (process == 0) {
        run_side(work, ends[1]);
    }
    struct side_process side = {.process = process, .channel = ends[0]};
    if (process < 0) {
        fd_closep(&side.channel);
        return err_set_errno(info, errno, "cannot start %s", work->what);
    }
    struct err_info answer = {0};
    if (recv(side.channel, &answer, sizeof(answer), 0) != sizeof(answer)) {
        (void)err_set(&answer, ERR_DEAD, "%s died", work->what); // it is in answer.code
    }
    if (answer.code != ERR_OK) {
        (void)end(&side);
        *info = answer;
        return answer.code;
    }
    *out = side;
    return ERR_OK;
}

void side_process_send_path(const struct side_process *side, const char *path)
{
    struct side_message message = {0};
    struct stat status;
    if (side->process != 0 && strlen(path) < sizeof(message.path)) {
        message.old_identity = stat(path, &status) == 0 ? file_identity(&status) : 0;
        memcpy(message.path, path, strlen(path));
        (void)send(side->channel, &message, sizeof(message),
                   MSG_NOSIGNAL | MSG_DONTWAIT); // or died
    }
}

enum err side_process_ask_reload(const struct side_process *side, struct err_info *info)
{
    const struct side_message message = {.is_reload = true};
    if (send(side->channel, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        return err_set_errno(info, errno, "the process beside the recorder takes no request");
    }
    return ERR_OK;
}

bool side_process_take_result(const struct side_process *side, struct err_info *out)
{
    const ssize_t len = recv(side->channel, out, sizeof(*out), MSG_DONTWAIT);
    if (len == (ssize_t)sizeof(*out)) {
        out->text[sizeof(out->text) - 1] = '\0';
        return true;
    }
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    (void)err_set(out, ERR_DEAD, "the process beside the recorder has ended"); // it is in *out
    return true;
}

bool side_process_stop(struct side_process *side, uint64_t grace_ms)
{
    if (side->process == 0) {
        return true;
    }
    struct pollfd its_end = {.fd = side->channel, .events = POLLIN};
    if (grace_ms == 0) {
        struct err_info result = {0}; // without a client that waits for it
        while (side_process_take_result(side, &result) && result.code != ERR_DEAD) {
        }
        const bool has_ended = result.code == ERR_DEAD;
        (void)end(side);
        return !has_ended;
    }
    (void)shutdown(side->channel, SHUT_WR); // connected, so this cannot fail
    if (poll(&its_end, 1, (int)min_u64(grace_ms, INT_MAX)) == 1) {
        siginfo_t how;
        // Its end of the channel closes a moment before it has ended. WNOWAIT: end() reaps it.
        (void)waitid(P_PID, (id_t)side->process, &how, WEXITED | WNOWAIT);
    }
    const int status = end(side);
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}
