// SPDX-License-Identifier: MIT
// metrics_server: see metrics_server.h.
#include "server/metrics_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "host/os/file.h"
#include "server/http.h"
#include "server/http/http_library.h"

enum {
    SERVER_NICE = 5, // more than a writer of checkpoints has: a client waits
    TLS_FILE_MAX_BYTES = 1 << 20,
};

// --- the server's process -----------------------------------------------------------------------

// Leave the terminal and its signals to the program, and yield to it.
static void stand_back(void)
{
    static const int ignored[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGTSTP};
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++) {
        (void)sigaction(ignored[i], &(struct sigaction){.sa_handler = SIG_IGN}, NULL); // valid
    }
    (void)prctl(PR_SET_NAME, "cairn-metrics"); // for ps; cannot fail
    (void)!nice(SERVER_NICE);
    // Without this the kernel may choose the program.
    CLEANUP(fd_closep) int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    (void)!write(score, "1000", 4);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++) {
        (void)dup2(null, fd); // else the streams stay open until the recorder ends
    }
}

// Take the path of the recording from the recorder, until it ends.
static void follow_recorder(int channel, struct metrics_source *source)
{
    char path[PATH_MAX + 1];
    for (;;) {
        const ssize_t len = recv(channel, path, sizeof(path) - 1, 0);
        if (len == 0 || (len < 0 && errno != EINTR)) {
            return;
        }
        if (len > 0) {
            path[len] = '\0';
            (void)!metrics_source_set_path(source, path); // without memory, it is never ready
        }
    }
}

static MUST_USE enum err
serve(struct http *http, const struct listener *listener, const char *pem, struct err_info *info)
{
    TRY(http_library_load(info));
    return http_daemon_start(http, listener->fd, pem, info) != NULL ? ERR_OK : info->code;
}

static _Noreturn void
run_server(const struct metrics_server *server, struct http *http, const char *pem)
{
    struct err_info info = {0};
    stand_back();
    const enum err err = serve(http, &server->listener, pem, &info);
    (void)send(server->channel, &info, sizeof(info), MSG_NOSIGNAL); // the recorder may have ended
    if (err == ERR_OK) {
        follow_recorder(server->channel, http->metrics);
        listener_remove(&server->listener);
    }
    _exit(err == ERR_OK ? EXIT_SUCCESS : EXIT_FAILURE);
}

// --- the recorder's side ------------------------------------------------------------------------

// Fork the server, and wait until it serves.
static MUST_USE enum err fork_server(struct metrics_server *server,
                                     struct http *http,
                                     const char *pem,
                                     struct err_info *info)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return err_set_errno(info, errno, "cannot start the server of --listen");
    }
    const pid_t process = fork();
    server->channel = ends[process == 0];
    (void)close(ends[process != 0]); // the other process has it
    if (process == 0) {
        run_server(server, http, pem);
    }
    if (process < 0) {
        return err_set_errno(info, errno, "cannot start the server of --listen");
    }
    server->process = process;
    struct err_info answer = {0};
    if (recv(server->channel, &answer, sizeof(answer), 0) != sizeof(answer)) {
        return err_set(info, ERR_DEAD, "the server of --listen died");
    }
    *info = answer;
    return answer.code;
}

static void forget(struct metrics_server *server)
{
    int status = 0;
    if (server->process != 0) {
        (void)kill(server->process, SIGKILL); // ours, and not reaped
        (void)waitpid(server->process, &status, 0);
    }
    fd_closep(&server->channel);
    listener_remove(&server->listener);
    listener_release(&server->listener);
    *server = (struct metrics_server){.channel = -1};
}

// A token must not cross a network in clear text.
static MUST_USE enum err check_secrecy(const struct metrics_server_options *options,
                                       const struct listener *listener,
                                       struct err_info *info)
{
    const bool is_near = listener->is_unix || listener->is_loopback;
    if (is_near || options->token == NULL || options->tls_file != NULL) {
        return ERR_OK;
    }
    return err_set(info, ERR_INVALID,
                   "--listen: beyond the loopback the token needs --tls; --no-token serves "
                   "everybody who reaches the port");
}

enum err metrics_server_start(const struct metrics_server_options *options,
                              struct metrics_server *out,
                              struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf pem = {0};
    struct metrics_source source = METRICS_SOURCE_INIT;
    struct http http = {.metrics = &source};
    struct metrics_server server = {.channel = -1};
    TRY(listener_open(options->address, &server.listener, info));
    source.names = options->names;
    source.recorder = getpid();
    http.credentials.policy.has_any_name = server.listener.is_unix || !server.listener.is_loopback;
    http.credentials.policy.is_open = server.listener.is_unix || options->token == NULL;
    if (options->token != NULL) {
        http.credentials.token = *options->token;
    }
    enum err err = check_secrecy(options, &server.listener, info);
    if (err == ERR_OK && options->tls_file != NULL) {
        err = file_read(options->tls_file, TLS_FILE_MAX_BYTES, &pem, info);
    }
    if (err == ERR_OK) {
        err =
            fork_server(&server, &http, options->tls_file != NULL ? strbuf_text(&pem) : NULL, info);
    }
    fd_closep(&server.listener.fd); // the server has it
    if (err != ERR_OK) {
        forget(&server);
        return err;
    }
    *out = server;
    return ERR_OK;
}

void metrics_server_tell_path(const struct metrics_server *server, const char *path)
{
    if (server->process != 0 && strlen(path) <= PATH_MAX) {
        (void)send(server->channel, path, strlen(path), MSG_NOSIGNAL | MSG_DONTWAIT); // or it died
    }
}

bool metrics_server_stop(struct metrics_server *server)
{
    if (server->process == 0) {
        return true;
    }
    int status = 0;
    const bool has_run = waitpid(server->process, &status, WNOHANG) == 0;
    server->process = has_run ? server->process : 0;
    forget(server); // it writes nothing, and a client must not delay the end
    return has_run;
}
