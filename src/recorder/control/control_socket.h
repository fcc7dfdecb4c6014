// SPDX-License-Identifier: MIT
// control_socket: how `cairn ctl` reaches a recorder: one request, one reply.
//
// The recorder listens on an abstract Unix socket of packets, named cairn-control-<pid>-<token>;
// nothing lies in the file system, so nothing is left behind by a recorder that is killed. Whoever
// looks for a recording finds the names in /proc/net/unix and asks each who it is. The token only
// keeps others from taking the name first. Both sides look at SO_PEERCRED: only processes of the
// recorder's own user id are heard, and only a recorder of one's own user id is asked.
//
//   request: a word, perhaps a space and a text, at most CONTROL_REQUEST_BYTES_MAX
//   reply:   '+' or '-', then a text for people or for the command
//
// A client that says nothing is dropped when its place is wanted. Some requests are answered later
// (checkpoint): the client waits for a number, which comes up in control_socket_announce.
// Context: H, the recorder's main thread; never blocks. The sending side: control_client.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"

#define CONTROL_NAME_PREFIX       "cairn-control-"
#define CONTROL_REQUEST_BYTES_MAX 8192u
#define CONTROL_REPLY_BYTES_MAX   65536u
#define CONTROL_CLIENTS_MAX       8u

struct control_client {
    int fd;             // -1: the place is free
    uint64_t waits_for; // 0: for nothing, it has not asked yet
};

struct control_socket {
    int listener; // owned; -1: there is none
    struct control_client clients[CONTROL_CLIENTS_MAX];
    uint32_t next_place; // whom the next one displaces if all places are taken
};

#define CONTROL_SOCKET_INIT \
    {                       \
        .listener = -1      \
    }

// Opens it. Without one, recording goes on as it began.
enum err control_socket_open(struct control_socket *control, struct err_info *info) MUST_USE;
void control_socket_close(struct control_socket *control);

// Answers a request: writes the reply, its sign first. A number other than 0 as result: the reply
// will come when that is announced.
struct control_handler {
    void *context;
    uint64_t (*answer)(void *context, const char *word, const char *text, struct strbuf *reply);
};

// Hears everybody who has something to say.
void control_socket_poll(struct control_socket *control, const struct control_handler *handler);

// What was numbered up to `number` has come: sends `reply` to those who wait for it.
void control_socket_announce(struct control_socket *control, uint64_t number, const char *reply);
