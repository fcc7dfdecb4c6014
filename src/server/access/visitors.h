// SPDX-License-Identifier: MIT
// visitors: the table of connections; keeps clients without a token from taking all of them.
//
//   connected --visitors_enter--> unknown --visitors_trust--> known (has presented the token)
//
// The server accepts a bounded number of connections. Any local program could open all of them and
// keep them busy with a byte now and then. So at most VISITORS_UNKNOWN_MAX may be unknown; one more
// disconnects the oldest of them. A connection that presented the token stays known.
//
// Context: H; any thread. Trust: unknown clients are hostile. Ownership: it owns the table;
// libmicrohttpd owns the sockets and calls visitors_leave before it closes one.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    VISITORS_MAX = 64, // connections that the server accepts
    VISITORS_UNKNOWN_MAX = 32,
};

struct visitor {
    int fd; // the client's connection
    bool is_known;
};

struct visitors {
    pthread_mutex_t lock; // protects the fields below
    struct visitor items[VISITORS_MAX];
    size_t count; // the oldest is first
};

// Add a connection. If there are too many unknown ones, shut the oldest down; it then ends by
// itself.
void visitors_enter(struct visitors *visitors, int fd);

void visitors_trust(struct visitors *visitors, int fd);

// Remove a connection. Call it before the socket is closed, since its number may be reused
// afterwards.
void visitors_leave(struct visitors *visitors, int fd);
