// SPDX-License-Identifier: MIT
#include "recorder/control/control_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "recording/format/chunk.h"

enum {
    BACKLOG = 16
};

// The address is abstract: it begins with a zero byte.
static socklen_t address_of(const char *name, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    const size_t name_bytes = strlen(name);
    memcpy(out->sun_path + 1, name, name_bytes); // below CONTROL_NAME_BYTES, so that it fits
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name_bytes);
}

enum err control_socket_open(struct control_socket *control, struct err_info *info)
{
    struct sockaddr_un address;
    uint64_t token = 0;
    if (getrandom(&token, sizeof(token), 0) != (ssize_t)sizeof(token)) {
        return err_set_errno(info, errno, "cannot get random bytes");
    }
    (void)snprintf(control->name, sizeof(control->name), CONTROL_NAME_PREFIX "%u-%016" PRIx64,
                   (unsigned)getpid(), token); // fits
    control->recording = -1;
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        control->clients[i] = (struct control_client){.fd = -1};
    }
    const socklen_t bytes = address_of(control->name, &address);
    control->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control->listener < 0 || bind(control->listener, (struct sockaddr *)&address, bytes) != 0 ||
        listen(control->listener, BACKLOG) != 0) {
        enum err err = err_set_errno(info, errno, "cannot open the socket for 'cairn ctl'");
        control_socket_close(control);
        return err;
    }
    return ERR_OK;
}

void control_socket_second_name(const char *name, const char *absolute_path, char *out)
{
    (void)snprintf(out, CONTROL_NAME_BYTES, "%.40s-%016" PRIx64, name,
                   chunk_hash(absolute_path, strlen(absolute_path))); // fits
}

void control_socket_name_recording(struct control_socket *control, const char *absolute_path)
{
    struct sockaddr_un address;
    char name[CONTROL_NAME_BYTES];
    if (control->listener < 0) {
        return;
    }
    control_socket_second_name(control->name, absolute_path, name);
    const socklen_t bytes = address_of(name, &address);
    control->recording = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (control->recording >= 0 &&
        bind(control->recording, (struct sockaddr *)&address, bytes) != 0) {
        fd_closep(&control->recording);
    }
}

static void drop(struct control_client *client)
{
    if (client->fd >= 0) {
        (void)close(client->fd);
    }
    *client = (struct control_client){.fd = -1};
}

void control_socket_close(struct control_socket *control)
{
    if (control->listener < 0) {
        return;
    }
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        drop(&control->clients[i]);
    }
    (void)close(control->listener);
    control->listener = -1;
    fd_closep(&control->recording);
    control->recording = -1;
}

static bool is_same_user(int peer)
{
    struct ucred peer_is;
    socklen_t bytes = sizeof(peer_is);
    return getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &peer_is, &bytes) == 0 &&
           peer_is.uid == geteuid();
}

// Return a free place, or the place of an old client that has sent nothing or awaits a change;
// NULL: all have been heard, and wait.
static struct control_client *find_place(struct control_socket *control)
{
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        if (control->clients[i].fd < 0) {
            return &control->clients[i];
        }
    }
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        struct control_client *place = &control->clients[control->next_place];
        control->next_place = (control->next_place + 1) % CONTROL_CLIENTS_MAX;
        if (place->waits_for == 0 || place->waits_for == CONTROL_CHANGE) {
            drop(place);
            return place;
        }
    }
    return NULL;
}

static void reply_to(struct control_client *client, const char *reply)
{
    // A client that does not read it has lost interest.
    (void)send(client->fd, reply, strlen(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
    drop(client);
}

static void take_request(struct control_client *client, const struct control_handler *handler)
{
    char request[CONTROL_REQUEST_BYTES_MAX + 1];
    const ssize_t len =
        recv(client->fd, request, CONTROL_REQUEST_BYTES_MAX, MSG_DONTWAIT | MSG_PEEK);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (len <= 0 || client->waits_for != 0) { // closed, or it sends while it should wait
        drop(client);
        return;
    }
    request[len] = '\0';
    char *text = strchr(request, ' ');
    if (text != NULL) {
        *text++ = '\0';
    }
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    const uint64_t number =
        handler->answer(handler->context, request, text != NULL ? text : "", &reply);
    if (number == CONTROL_LATER) {
        return;
    }
    (void)recv(client->fd, request, 1, MSG_DONTWAIT); // takes the packet that was looked at
    client->waits_for = number;
    if (client->waits_for == 0) {
        reply_to(client, strbuf_result(&reply) == ERR_OK ? strbuf_text(&reply) : "-no memory");
    }
}

// Accept all that wait, and hear each at once: most have sent their request, so that their place is
// free again for the next one.
static void accept_all(struct control_socket *control, const struct control_handler *handler)
{
    for (int i = 0; i < BACKLOG; i++) {
        const int peer = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (peer < 0) {
            return;
        }
        struct control_client *client = is_same_user(peer) ? find_place(control) : NULL;
        if (client == NULL) {
            (void)close(peer);
            continue;
        }
        client->fd = peer;
        take_request(client, handler);
    }
}

void control_socket_poll(struct control_socket *control, const struct control_handler *handler)
{
    if (control->listener < 0) {
        return;
    }
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        if (control->clients[i].fd >= 0) {
            take_request(&control->clients[i], handler);
        }
    }
    accept_all(control, handler);
}

// Send `reply` to the clients that wait for one of these numbers.
static void
announce(struct control_socket *control, uint64_t first, uint64_t last, const char *reply)
{
    for (size_t i = 0; control->listener >= 0 && i < CONTROL_CLIENTS_MAX; i++) {
        struct control_client *client = &control->clients[i];
        if (client->fd >= 0 && client->waits_for >= first && client->waits_for <= last) {
            reply_to(client, reply);
        }
    }
}

void control_socket_announce(struct control_socket *control, uint64_t number, const char *reply)
{
    announce(control, 1, number, reply);
}

void control_socket_announce_change(struct control_socket *control, const char *reply)
{
    announce(control, CONTROL_CHANGE, CONTROL_CHANGE, reply);
}
