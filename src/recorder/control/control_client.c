// SPDX-License-Identifier: MIT
#include "recorder/control/control_client.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/containers/vec.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/number.h"
#include "recorder/control/control_socket.h"

#define SOCKET_LIST_BYTES_MAX (64u << 20)

enum {
    WHO_PATIENCE_MS = 5000,  // for recorders that may have the recording, while they do not run
    START_PATIENCE_MS = 500, // for a recorder that has no socket yet
    LOOK_MS = 25,            // between two searches for recorders
    LOOK_MS_MAX = 50,        // as which a longer one counts
};

// A recorder that is asked for its recording.
struct asked {
    char name[CONTROL_NAME_BYTES]; // of its socket
    int fd;                        // owned; -1: not asked yet, or is_done
    bool is_done;                  // it has refused, or has gone
    bool has_other;                // it has another recording, by its second name
    uint64_t ran_ms;               // when it was last seen not stopped
};

DEFINE_VEC(asked_vec, struct asked);
DEFINE_VEC(pollfd_vec, struct pollfd);

static void asked_release(struct asked_vec *asked)
{
    for (size_t i = 0; i < asked->len; i++) {
        fd_closep(&asked->items[i].fd);
    }
    asked_vec_release(asked);
}

// Connect to the recorder that listens at `name`. Return a socket; -1 with errno EAGAIN if too many
// clients wait there already, -1 with another errno if this user has no such recorder.
static int connect_to(const char *name, int flags)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t name_bytes = strlen(name); // below CONTROL_NAME_BYTES, so that it fits
    memcpy(address.sun_path + 1, name, name_bytes);
    const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name_bytes);
    CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
    // Connecting waits if many clients wait already for a stopped recorder.
    const struct timeval patience = {.tv_sec = WHO_PATIENCE_MS / 1000,
                                     .tv_usec = WHO_PATIENCE_MS % 1000 * 1000L};
    struct ucred peer_is = {0};
    socklen_t peer_bytes = sizeof(peer_is);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) != 0 ||
        connect(fd, (struct sockaddr *)&address, bytes) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer_is, &peer_bytes) != 0) {
        return -1;
    }
    if (peer_is.uid != geteuid()) {
        errno = EPERM;
        return -1;
    }
    const int connected = fd;
    fd = -1;
    return connected;
}

static bool send_request(int fd, const char *word, const char *text)
{
    CLEANUP(strbuf_release) struct strbuf request = {0};
    strbuf_append_text(&request, word);
    if (text != NULL) {
        strbuf_append_char(&request, ' ');
        strbuf_append_text(&request, text);
    }
    return strbuf_result(&request) == ERR_OK &&
           send(fd, request.data, request.len, MSG_NOSIGNAL) == (ssize_t)request.len;
}

// Wait for events; an interrupting signal starts the wait again.
static int wait_for(struct pollfd *fds, size_t count, int patience_ms)
{
    int ready;
    do {
        ready = poll(fds, count, patience_ms);
    } while (ready < 0 && errno == EINTR);
    return ready;
}

// What comes of a request.
enum outcome {
    OUTCOME_REPLY,
    OUTCOME_CLOSED, // not heard: the recorder gave our place to another client, or it has ended
    OUTCOME_NOTHING,
};

// Append the reply that has come.
static enum outcome read_reply(int fd, struct strbuf *reply)
{
    if (!strbuf_reserve(reply, CONTROL_REPLY_BYTES_MAX)) {
        return OUTCOME_NOTHING;
    }
    const ssize_t len = recv(fd, reply->data + reply->len, CONTROL_REPLY_BYTES_MAX, MSG_DONTWAIT);
    if (len <= 0) {
        return len < 0 && errno == EAGAIN ? OUTCOME_NOTHING : OUTCOME_CLOSED;
    }
    reply->len += (size_t)len;
    reply->data[reply->len] = '\0';
    return OUTCOME_REPLY;
}

// Send one request and read one reply.
static enum outcome talk(int fd, const char *word, const char *text, struct strbuf *reply)
{
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    if (!send_request(fd, word, text)) {
        return errno == EPIPE || errno == ECONNRESET ? OUTCOME_CLOSED : OUTCOME_NOTHING;
    }
    if (wait_for(&answer, 1, CONTROL_PATIENCE_MS) <= 0) {
        return OUTCOME_NOTHING;
    }
    return read_reply(fd, reply);
}

// Return whether a line of /proc/net/unix, "Num: RefCount Protocol Flags ..." in hexadecimal, is a
// listener. A client that waits for accept has a line with the same name, without the flag.
static bool is_listening(const char *line)
{
    enum {
        ACCEPTS_CONNECTIONS = 0x10000 // __SO_ACCEPTCON of linux/net.h
    };
    for (int field = 0; field < 3; field++) {
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    uint64_t flags = 0;
    return number_take(&line, 16, &flags) && (flags & ACCEPTS_CONNECTIONS) != 0;
}

// Return the name of a recorder's socket in one line of /proc/net/unix, NULL if it has none.
static const char *name_in_line(const char *line, size_t line_bytes, size_t *out_bytes)
{
    static const char prefix[] = "@" CONTROL_NAME_PREFIX; // '@' represents the zero byte
    const char *at = memmem(line, line_bytes, prefix, sizeof(prefix) - 1);
    if (at == NULL || !is_listening(line)) {
        return NULL;
    }
    *out_bytes = (size_t)(line + line_bytes - at) - 1;
    return at + 1;
}

static bool is_listed(const struct asked_vec *recorders, const struct asked *wanted)
{
    for (size_t i = 0; i < recorders->len; i++) {
        if (strcmp(recorders->items[i].name, wanted->name) == 0) {
            return true;
        }
    }
    return false;
}

// Add the recorders that have come since the last call.
static MUST_USE enum err
look_for_recorders(struct asked_vec *recorders, struct strbuf *sockets, struct err_info *info)
{
    strbuf_clear(sockets);
    TRY(file_read("/proc/net/unix", SOCKET_LIST_BYTES_MAX, sockets, info));
    for (const char *line = strbuf_text(sockets); *line != '\0';) {
        const size_t line_bytes = strcspn(line, "\n");
        size_t name_bytes = 0;
        const char *name = name_in_line(line, line_bytes, &name_bytes);
        if (name != NULL && name_bytes < CONTROL_NAME_BYTES) {
            struct asked asked = {.fd = -1};
            memcpy(asked.name, name, name_bytes);
            if (!is_listed(recorders, &asked) && asked_vec_push(recorders, asked) != ERR_OK) {
                return ERR_NO_MEMORY;
            }
        }
        line += line_bytes + (line[line_bytes] == '\n');
    }
    return ERR_OK;
}

// Return whether a recorder has second names, and none is for that recording. Others can take such
// names, too, but never a name that the recorder has.
static bool has_other(const char *sockets, const char *name, const char *recording)
{
    char any[CONTROL_NAME_BYTES];
    char own[CONTROL_NAME_BYTES];
    if (recording[0] != '/') {
        return false;
    }
    (void)snprintf(any, sizeof(any), "%.40s-", name); // fits
    control_socket_second_name(name, recording, own);
    return strstr(sockets, any) != NULL && strstr(sockets, own) == NULL;
}

// Send the question to each recorder whose queue has room, and list all that may answer.
static MUST_USE enum err ask_recorders(struct asked_vec *recorders,
                                       const char *sockets,
                                       const char *recording,
                                       struct pollfd_vec *out,
                                       struct err_info *info)
{
    pollfd_vec_clear(out);
    for (size_t i = 0; i < recorders->len; i++) {
        struct asked *asked = &recorders->items[i];
        asked->has_other =
            asked->fd < 0 && !asked->is_done && has_other(sockets, asked->name, recording);
        if (asked->fd < 0 && !asked->is_done && !asked->has_other) {
            asked->fd = connect_to(asked->name, SOCK_NONBLOCK);
            if (asked->fd < 0 && err_is_own_lack(errno)) {
                return err_set_errno(info, errno, "cannot ask the recorders");
            }
            asked->is_done = asked->fd < 0 && errno != EAGAIN;
            // The recorder may have given our place to another client already: it is asked again.
            if (asked->fd >= 0 && !send_request(asked->fd, "is", recording)) {
                fd_closep(&asked->fd);
            }
        }
        TRY(pollfd_vec_push(
            out, (struct pollfd){.fd = asked->is_done ? -1 : asked->fd, .events = POLLIN}));
    }
    return ERR_OK;
}

// Read the answers. Return the recorder that has the recording, or NULL.
static const struct asked *take_answers(struct asked_vec *recorders, const struct pollfd_vec *fds)
{
    for (size_t i = 0; i < recorders->len; i++) {
        struct asked *asked = &recorders->items[i];
        char answer[2] = "";
        if (fds->items[i].revents != 0) {
            const ssize_t len = recv(asked->fd, answer, sizeof(answer), MSG_DONTWAIT);
            if (len == 1 && answer[0] == '+') {
                return asked;
            }
            // The end without an answer: the recorder gave our place to another client, so it is
            // asked again; or it has ended, which the next connection shows.
            asked->is_done = len > 0;
            if (!asked->is_done) {
                fd_closep(&asked->fd);
            }
        }
    }
    return NULL;
}

// Return whether the recorder at `fd` is stopped, or cannot be seen from here.
static bool is_stopped(int fd)
{
    struct ucred peer_is = {0};
    socklen_t bytes = sizeof(peer_is);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer_is, &bytes) != 0 || peer_is.pid <= 0) {
        return true;
    }
    return proc_file_is_stopped(peer_is.pid);
}

// Return for how long to ask in all. A recorder that runs will answer: it works, or the machine is
// busy. One that is stopped may go on.
static uint64_t patience_ms(struct asked_vec *recorders, uint64_t passed_ms)
{
    uint64_t patience = START_PATIENCE_MS;
    for (size_t i = 0; i < recorders->len; i++) {
        struct asked *asked = &recorders->items[i];
        if (asked->is_done || asked->has_other) {
            continue;
        }
        if (asked->fd >= 0 && !is_stopped(asked->fd)) {
            asked->ran_ms = passed_ms;
        }
        patience = max_u64(patience, asked->ran_ms + WHO_PATIENCE_MS);
    }
    return min_u64(patience, CONTROL_PATIENCE_MS);
}

// Connect to the recorder of `recording`, which is a pid or an absolute path. All are asked at
// once, so that one that is stopped delays no other. One that comes within START_PATIENCE_MS is
// asked too.
static MUST_USE enum err find(const char *recording, int *out_fd, struct err_info *info)
{
    CLEANUP(asked_release) struct asked_vec recorders = {0};
    CLEANUP(pollfd_vec_release) struct pollfd_vec fds = {0};
    CLEANUP(strbuf_release) struct strbuf sockets = {0};
    uint64_t looked_ms = clock_monotonic_ms();
    uint64_t passed_ms = 0; // but for the time in which the machine was too busy for a search
    while (passed_ms < patience_ms(&recorders, passed_ms)) {
        TRY(look_for_recorders(&recorders, &sockets, info));
        TRY(ask_recorders(&recorders, strbuf_text(&sockets), recording, &fds, info));
        (void)wait_for(fds.items, fds.len, LOOK_MS);
        const struct asked *found = take_answers(&recorders, &fds);
        if (found != NULL) {
            *out_fd = connect_to(found->name, 0);
            if (*out_fd >= 0) {
                return ERR_OK;
            }
            if (errno != ECONNREFUSED) {
                return err_set_errno(info, errno, "cannot ask the recorder");
            }
            break; // it has ended since
        }
        const uint64_t now_ms = clock_monotonic_ms();
        passed_ms += min_u64(now_ms - looked_ms, LOOK_MS_MAX);
        looked_ms = now_ms;
    }
    return err_set(info, ERR_NOT_FOUND, "you have no running recording '%s'; it may have ended",
                   recording);
}

static bool is_pid(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' && access(text, F_OK) != 0;
}

// Connect to the recorder that is process `recorder`.
static MUST_USE enum err find_process(pid_t recorder, int *out_fd, struct err_info *info)
{
    char prefix[CONTROL_NAME_BYTES];
    CLEANUP(asked_release) struct asked_vec recorders = {0};
    CLEANUP(strbuf_release) struct strbuf sockets = {0};
    (void)snprintf(prefix, sizeof(prefix), CONTROL_NAME_PREFIX "%d-", (int)recorder); // fits
    TRY(look_for_recorders(&recorders, &sockets, info));
    for (size_t i = 0; i < recorders.len && *out_fd < 0; i++) {
        if (strncmp(recorders.items[i].name, prefix, strlen(prefix)) == 0) {
            *out_fd = connect_to(recorders.items[i].name, 0);
            if (*out_fd < 0 && err_is_own_lack(errno)) {
                return err_set_errno(info, errno, "cannot ask the recorder");
            }
        }
    }
    return *out_fd >= 0 ? ERR_OK
                        : err_set(info, ERR_NOT_FOUND, "process %d records nothing", (int)recorder);
}

// Whom to ask.
struct addressee {
    const char *recording; // a pid or an absolute path; NULL: only the process counts
    pid_t recorder;
    const char *name; // for messages
};

static MUST_USE enum err connect_anew(const struct addressee *to, int *fd, struct err_info *info)
{
    fd_closep(fd);
    *fd = -1;
    return to->recording != NULL ? find(to->recording, fd, info)
                                 : find_process(to->recorder, fd, info);
}

static enum err no_answer(enum err err, const struct addressee *to, struct err_info *info)
{
    return err_set(info, err, "the recorder of '%s' does not answer; it may have ended", to->name);
}

// Send the request, and append the reply. It is sent again to a recorder that has closed the
// connection, for that has not heard it.
static MUST_USE enum err ask(const struct addressee *to,
                             const char *word,
                             const char *text,
                             struct strbuf *reply,
                             struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf answer = {0};
    CLEANUP(fd_closep) int fd = -1;
    TRY(connect_anew(to, &fd, info));
    const uint64_t begin_ms = clock_monotonic_ms();
    enum outcome outcome = talk(fd, word, text, &answer);
    while (outcome == OUTCOME_CLOSED && clock_monotonic_ms() - begin_ms < CONTROL_PATIENCE_MS) {
        const enum err found = connect_anew(to, &fd, info);
        if (found != ERR_OK) {
            return found == ERR_NOT_FOUND ? no_answer(found, to, info) : found;
        }
        outcome = talk(fd, word, text, &answer);
    }
    if (outcome != OUTCOME_REPLY) {
        return no_answer(ERR_DEAD, to, info);
    }
    if (answer.data[0] != '+') {
        return err_set(info, ERR_INVALID, "%s: %s", to->name, answer.data + 1);
    }
    strbuf_append_text(reply, answer.data + 1);
    return strbuf_result(reply);
}

enum err control_ask(const char *recording,
                     const char *word,
                     const char *text,
                     struct strbuf *reply,
                     struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    if (is_pid(recording)) {
        strbuf_append_text(&name, recording);
    } else {
        TRY(file_absolute_path(recording, &name, info));
    }
    const struct addressee to = {.recording = strbuf_text(&name), .name = recording};
    return ask(&to, word, text, reply, info);
}

enum err control_ask_recorder(
    pid_t recorder, const char *word, const char *text, struct strbuf *reply, struct err_info *info)
{
    char name[16];
    (void)snprintf(name, sizeof(name), "%d", (int)recorder); // fits
    const struct addressee to = {.recorder = recorder, .name = name};
    return ask(&to, word, text, reply, info);
}

enum err control_begin(
    pid_t recorder, const char *word, const char *text, int *out_fd, struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    TRY(find_process(recorder, &fd, info));
    if (!send_request(fd, word, text)) {
        return err_set_errno(info, errno, "cannot ask the recorder");
    }
    *out_fd = fd;
    fd = -1;
    return ERR_OK;
}

enum err control_take(int fd, struct strbuf *reply)
{
    CLEANUP(strbuf_release) struct strbuf answer = {0};
    const enum outcome outcome = read_reply(fd, &answer);
    if (outcome != OUTCOME_REPLY || answer.data[0] != '+') {
        return outcome == OUTCOME_NOTHING ? ERR_NOT_FOUND : ERR_DEAD;
    }
    strbuf_append_text(reply, answer.data + 1);
    return strbuf_result(reply);
}
