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
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"
#include "recorder/control/control_socket.h"

#define SOCKET_LIST_BYTES_MAX (64u << 20)
#define WHO_PATIENCE_MS       5000 // for a recorder that may have another recording

// Return a socket to the recorder that listens at `name`, -1 if this user has none.
static int connect_to(const char *name, size_t name_bytes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (name_bytes + 1 > sizeof(address.sun_path)) {
        return -1;
    }
    memcpy(address.sun_path + 1, name, name_bytes);
    const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name_bytes);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    // Connecting waits if many clients wait already for a stopped recorder.
    const struct timeval patience = {.tv_sec = WHO_PATIENCE_MS / 1000,
                                     .tv_usec = WHO_PATIENCE_MS % 1000 * 1000L};
    struct ucred peer_is = {0};
    socklen_t peer_bytes = sizeof(peer_is);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) != 0 ||
        connect(fd, (struct sockaddr *)&address, bytes) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer_is, &peer_bytes) != 0 ||
        peer_is.uid != geteuid()) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return -1;
    }
    return fd;
}

// Send one request and read one reply. False: no answer.
static bool talk(int fd, const char *word, const char *text, int patience_ms, struct strbuf *reply)
{
    CLEANUP(strbuf_release) struct strbuf request = {0};
    strbuf_append_text(&request, word);
    if (text != NULL) {
        strbuf_append_char(&request, ' ');
        strbuf_append_text(&request, text);
    }
    if (strbuf_result(&request) != ERR_OK ||
        send(fd, request.data, request.len, MSG_NOSIGNAL) != (ssize_t)request.len) {
        return false;
    }
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    int ready;
    do {
        ready = poll(&answer, 1, patience_ms);
    } while (ready < 0 && errno == EINTR);
    static char buffer[CONTROL_REPLY_BYTES_MAX];
    const ssize_t len = ready > 0 ? recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) : -1;
    if (len <= 0) {
        return false;
    }
    strbuf_append(reply, buffer, (size_t)len);
    return strbuf_result(reply) == ERR_OK;
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

// Return whether the recorder at `name` knows `recording`.
static bool is_recorder_of(const char *name, size_t name_bytes, const char *recording)
{
    CLEANUP(fd_closep) int fd = connect_to(name, name_bytes);
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    return fd >= 0 && talk(fd, "is", recording, WHO_PATIENCE_MS, &reply) &&
           strbuf_text(&reply)[0] == '+';
}

// Connect to the recorder of `recording`, which is a pid or an absolute path.
static enum err find(const char *recording, int *out_fd, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf sockets = {0};
    TRY(file_read("/proc/net/unix", SOCKET_LIST_BYTES_MAX, &sockets, info));
    const char *line = strbuf_text(&sockets);
    while (*line != '\0') {
        const size_t line_bytes = strcspn(line, "\n");
        size_t name_bytes = 0;
        const char *name = name_in_line(line, line_bytes, &name_bytes);
        if (name != NULL && is_recorder_of(name, name_bytes, recording)) {
            *out_fd = connect_to(name, name_bytes);
            if (*out_fd >= 0) {
                return ERR_OK;
            }
        }
        line += line_bytes + (line[line_bytes] == '\n');
    }
    return err_set(info, ERR_NOT_FOUND, "you have no running recording '%s'; it may have ended",
                   recording);
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
    if (!talk(fd, word, text, CONTROL_PATIENCE_MS, &answer)) {
        return err_set(info, ERR_DEAD, "the recorder of '%s' does not answer; it may have ended",
                       recording);
    }
    if (answer.data[0] != '+') {
        return err_set(info, ERR_INVALID, "%s: %s", recording, answer.data + 1);
    }
    strbuf_append_text(reply, answer.data + 1);
    return strbuf_result(reply);
}
