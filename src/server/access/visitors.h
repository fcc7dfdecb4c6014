// SPDX-License-Identifier: MIT
// visitors: who is connected, so that those without a token never keep others out.
//
//   connected --visitors_enter--> unknown --visitors_trust--> known (has shown the token)
//
// The server takes a bounded number of connections. Whoever on this machine opens all of them and
// sends a byte now and then would hold them for ever; so only VISITORS_UNKNOWN_MAX may be unknown,
// and one more hangs up on the oldest of them. One that shows the token is known from then on.
//
// Context: H; any thread. Trust: none in the unknown. Owns: the table; the sockets are the
// daemon's, which tells of each that it closes before it does (visitors_leave).
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    VISITORS_MAX = 64, // connections that the server takes
    VISITORS_UNKNOWN_MAX = 32,
};

struct visitor {
    int fd; // the client's connection
    bool is_known;
};

struct visitors {
    pthread_mutex_t lock; // protects what follows
    struct visitor items[VISITORS_MAX];
    size_t count; // oldest first
};

#define VISITORS_INIT                     \
    {                                     \
        .lock = PTHREAD_MUTEX_INITIALIZER \
    }

// May hang up on somebody else, whose connection then ends by itself.
void visitors_enter(struct visitors *visitors, int fd);

void visitors_trust(struct visitors *visitors, int fd);

// Before the socket is closed; after it the number may be another's.
void visitors_leave(struct visitors *visitors, int fd);
