// SPDX-License-Identifier: MIT
// control_socket: takes the requests of `cairn ctl`: one request, one reply.
//
// The recorder listens on an abstract Unix socket of packets, named cairn-control-<pid>-<token>. It
// has no file, so a killed recorder leaves nothing behind. A client finds the names in
// /proc/net/unix and asks each recorder for its recording. The token only keeps others from taking
// the name first. Once the recorder knows the recording it takes a second name, <first>-<hash of
// its absolute path>, at which nothing listens: a client need not wake recorders of other
// recordings. Both sides check SO_PEERCRED: the recorder serves only processes of its own user id,
// and a client asks only recorders of its own user id.
//
//   request: a word, perhaps a space and a text, at most CONTROL_REQUEST_BYTES_MAX
//   reply:   '+' or '-', then a text for people or for the command
//
// A client that sends nothing is dropped when another needs its place; it asks again. The reply to
// some requests comes later (checkpoint): the client waits for a number, which
// control_socket_announce announces. It keeps its place, for its request would be obeyed twice. A
// client that waits for CONTROL_CHANGE only wants to know; it may be displaced.
// Context: H, the recorder's main thread; never blocks. The sending side: control_client.h.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"

#define CONTROL_NAME_PREFIX       "cairn-control-"
#define CONTROL_REQUEST_BYTES_MAX 8192u
#define CONTROL_REPLY_BYTES_MAX   65536u
#define CONTROL_CLIENTS_MAX       8u
#define CONTROL_NAME_BYTES        64u // with the zero byte that ends it

struct control_client {
    int fd;             // -1: the place is free
    uint64_t waits_for; // 0: no number, it has sent no request yet
};

struct control_socket {
    int listener;                  // owned; -1: not open
    int recording;                 // owned; bound to the second name; -1: not yet
    char name[CONTROL_NAME_BYTES]; // the first one
    struct control_client clients[CONTROL_CLIENTS_MAX];
    uint32_t next_place; // which client the next one displaces if all places are taken
};

#define CONTROL_SOCKET_INIT             \
    {                                   \
        .listener = -1, .recording = -1 \
    }

// Open the socket. Recording works without it, too.
enum err control_socket_open(struct control_socket *control, struct err_info *info) MUST_USE;
void control_socket_close(struct control_socket *control);

// Take the second name. Without it all clients ask this recorder.
void control_socket_name_recording(struct control_socket *control, const char *absolute_path);

// Write the second name of the recorder `name` if it has that recording: CONTROL_NAME_BYTES.
void control_socket_second_name(const char *name, const char *absolute_path, char *out);

#define CONTROL_LATER  UINT64_MAX
#define CONTROL_CHANGE (UINT64_MAX - 1)

// Answer a request: write the reply, its sign first. Return 0, or the number whose announcement
// brings the reply, or CONTROL_CHANGE: control_socket_announce_change does, or CONTROL_LATER: the
// request stays in the socket, and the next control_socket_poll asks for its answer again.
struct control_handler {
    void *context;
    uint64_t (*answer)(void *context, const char *word, const char *text, struct strbuf *reply);
};

// Handle the requests of all clients.
void control_socket_poll(struct control_socket *control, const struct control_handler *handler);

// Send `reply` to the clients that wait for a number up to `number`.
void control_socket_announce(struct control_socket *control, uint64_t number, const char *reply);

// Send `reply` to the clients that wait for a change.
void control_socket_announce_change(struct control_socket *control, const char *reply);
