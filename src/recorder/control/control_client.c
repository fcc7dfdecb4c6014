// SPDX-License-Identifier: MIT
// control_client: see the header.
#include "recorder/control/control_client.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/containers/vec.h"
#include "host/os/file.h"
#include "host/text/number.h"
#include "recorder/control/control_socket.h"

#define SOCKET_LIST_BYTES_MAX (64u << 20)

enum {
    WHO_PATIENCE_MS = 5000,  // for recorders that may have the recording
    START_PATIENCE_MS = 500, // for a recorder that has no socket yet
    RETRY_MS = 20,
};

// A recorder that is asked for its recording.
struct asked {
    const char *name; // of its socket, borrowed
    size_t name_bytes;
    int fd;       // owned; -1: not asked yet, its queue is full
    bool is_done; // it has refused, or has gone
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
static int connect_to(const char *name, size_t name_bytes, int flags)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (name_bytes + 1 > sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
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

// Send one request and read one reply. False: no answer.
static bool talk(int fd, const char *word, const char *text, struct strbuf *reply)
{
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    if (!send_request(fd, word, text) || !strbuf_reserve(reply, CONTROL_REPLY_BYTES_MAX) ||
        wait_for(&answer, 1, CONTROL_PATIENCE_MS) <= 0) {
        return false;
    }
    const ssize_t len = recv(fd, reply->data + reply->len, CONTROL_REPLY_BYTES_MAX, MSG_DONTWAIT);
    if (len <= 0) {
        return false;
    }
    reply->len += (size_t)len;
    reply->data[reply->len] = '\0';
    return true;
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

// List the recorders' sockets that `sockets`, the text of /proc/net/unix, has.
static MUST_USE enum err list_recorders(const char *sockets, struct asked_vec *out)
{
    for (const char *line = sockets; *line != '\0';) {
        const size_t line_bytes = strcspn(line, "\n");
        struct asked asked = {.fd = -1};
        asked.name = name_in_line(line, line_bytes, &asked.name_bytes);
        if (asked.name != NULL) {
            TRY(asked_vec_push(out, asked));
        }
        line += line_bytes + (line[line_bytes] == '\n');
    }
    return ERR_OK;
}

// Send the question to each recorder whose queue has room. Return how many have none.
static size_t ask_recorders(struct asked_vec *recorders, const char *recording)
{
    size_t full = 0;
    for (size_t i = 0; i < recorders->len; i++) {
        struct asked *asked = &recorders->items[i];
        if (asked->fd >= 0 || asked->is_done) {
            continue;
        }
        asked->fd = connect_to(asked->name, asked->name_bytes, SOCK_NONBLOCK);
        if (asked->fd < 0 && errno == EAGAIN) {
            full++;
        } else {
            asked->is_done = asked->fd < 0 || !send_request(asked->fd, "is", recording);
        }
    }
    return full;
}

// Wait until a recorder says that it has the recording, and return it; NULL if all have refused, or
// do not answer in time. All are asked at once, so that one that is stopped delays no other.
static const struct asked *
find_recorder(struct asked_vec *recorders, struct pollfd_vec *fds, const char *recording)
{
    const uint64_t end_ms = clock_monotonic_ms() + WHO_PATIENCE_MS;
    for (;;) {
        const size_t full = ask_recorders(recorders, recording);
        size_t open = full;
        for (size_t i = 0; i < recorders->len; i++) {
            const struct asked *asked = &recorders->items[i];
            fds->items[i] =
                (struct pollfd){.fd = asked->is_done ? -1 : asked->fd, .events = POLLIN};
            open += fds->items[i].fd >= 0;
        }
        const uint64_t now_ms = clock_monotonic_ms();
        if (open == 0 || now_ms >= end_ms) {
            return NULL;
        }
        const uint64_t rest_ms = end_ms - now_ms;
        (void)wait_for(fds->items, fds->len,
                       (int)(full > 0 ? min_u64(rest_ms, RETRY_MS) : rest_ms));
        for (size_t i = 0; i < recorders->len; i++) {
            char sign = '-';
            if (fds->items[i].revents == 0) {
                continue;
            }
            if (recv(fds->items[i].fd, &sign, 1, MSG_DONTWAIT) == 1 && sign == '+') {
                return &recorders->items[i];
            }
            recorders->items[i].is_done = true;
        }
    }
}

// Connect to the recorder of `recording`, which is a pid or an absolute path. Set *out_fd to -1 if
// there is none.
static MUST_USE enum err find_once(const char *recording, int *out_fd, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf sockets = {0};
    CLEANUP(asked_release) struct asked_vec recorders = {0};
    CLEANUP(pollfd_vec_release) struct pollfd_vec fds = {0};
    TRY(file_read("/proc/net/unix", SOCKET_LIST_BYTES_MAX, &sockets, info));
    if (list_recorders(strbuf_text(&sockets), &recorders) != ERR_OK ||
        pollfd_vec_resize(&fds, recorders.len) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "not enough memory");
    }
    const struct asked *found = find_recorder(&recorders, &fds, recording);
    *out_fd = found != NULL ? connect_to(found->name, found->name_bytes, 0) : -1;
    return ERR_OK;
}

// Do as find_once, and wait a moment for a recorder that has just been started.
static MUST_USE enum err find(const char *recording, int *out_fd, struct err_info *info)
{
    const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
    const uint64_t end_ms = clock_monotonic_ms() + START_PATIENCE_MS;
    for (;;) {
        TRY(find_once(recording, out_fd, info));
        if (*out_fd >= 0) {
            return ERR_OK;
        }
        if (clock_monotonic_ms() >= end_ms) {
            return err_set(info, ERR_NOT_FOUND,
                           "you have no running recording '%s'; it may have ended", recording);
        }
        (void)nanosleep(&pause, NULL); // a signal may end it early
    }
}

static bool is_pid(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' && access(text, F_OK) != 0;
}

enum err control_ask(const char *recording,
                     const char *word,
                     const char *text,
                     struct strbuf *reply,
                     struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf answer = {0};
    CLEANUP(fd_closep) int fd = -1;
    if (is_pid(recording)) {
        strbuf_append_text(&name, recording);
    } else {
        TRY(file_absolute_path(recording, &name, info));
    }
    TRY(find(strbuf_text(&name), &fd, info));
    if (!talk(fd, word, text, &answer)) {
        return err_set(info, ERR_DEAD, "the recorder of '%s' does not answer; it may have ended",
                       recording);
    }
    if (answer.data[0] != '+') {
        return err_set(info, ERR_INVALID, "%s: %s", recording, answer.data + 1);
    }
    strbuf_append_text(reply, answer.data + 1);
    return strbuf_result(reply);
}
