// SPDX-License-Identifier: MIT
// event_hub: distributes server-sent events to the pages that listen.
//
//   server --event_hub_send--> [ last few events ] <--event_listener_read-- one thread a listener
//
// Each listener has the number of its next event. A listener that falls far behind misses the
// oldest events. This is harmless: every event describes the present state, not a change. A
// listener sleeps in poll, on its own wake-up descriptor and on its client's connection, so that
// its place is free as soon as the client disconnects. A listener without events sends a comment
// line now and then, to detect connections that broke silently.
// Context: H; any thread. The mutex protects all fields of the hub; the fields of a listener belong
// to its thread.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/text/strbuf.h"

enum {
    EVENT_HUB_KEPT = 8,
    EVENT_HUB_LISTENERS = 16,
};

struct event_hub {
    pthread_mutex_t mutex;
    struct strbuf events[EVENT_HUB_KEPT]; // owned; whole events as sent, at their number modulo
    uint64_t count;                       // all events ever sent
    struct event_listener *listeners[EVENT_HUB_LISTENERS]; // borrowed; NULL: free
    bool is_over;
};

enum err event_hub_init(struct event_hub *hub) MUST_USE;
void event_hub_release(struct event_hub *hub); // without listeners

// Send an event to all listeners. `json` is one line. If memory runs out, the event is lost.
void event_hub_send(struct event_hub *hub, const char *name, uint64_t id, const char *json);

// End the streams of all listeners.
void event_hub_end(struct event_hub *hub);

struct event_listener {
    struct event_hub *hub; // borrowed
    int wake_fd;           // owned; readable at a new event or the end
    int client_fd;         // borrowed; the connection
    uint64_t next;         // number of the next event
    struct strbuf pending; // the event that is being sent
    size_t passed;         // bytes of pending already sent
};

// Create a listener whose first event is `greeting`, formatted by event_format. `client_fd` is its
// client's socket. Return NULL if there are too many listeners or memory ran out.
struct event_listener *
event_listener_new(struct event_hub *hub, const struct strbuf *greeting, int client_fd);
void event_listener_free(struct event_listener *listener);

// Wait for an event and write up to `max` bytes of it. Return the number of bytes; 0 at the end and
// after the client disconnected.
size_t event_listener_read(struct event_listener *listener, char *buffer, size_t max);

// Append an event in the format of text/event-stream.
void event_format(struct strbuf *out, const char *name, uint64_t id, const char *json);
