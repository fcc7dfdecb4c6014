// SPDX-License-Identifier: MIT
// event_hub: news for the pages that listen, as server-sent events.
//
//   server --event_hub_send--> [ last few events ] <--event_listener_read-- one thread a listener
//
// Each listener remembers the number of the last event that it has passed on; one that falls far
// behind misses the oldest, which does no harm: every event says how things stand, not what
// changed. A listener sleeps in poll, on its own wake-up descriptor and on its client's connection,
// so that its place is free as soon as the client has left. One that hears nothing for a while gets
// a comment line, so that connections that died without a word are noticed too.
// Context: H; any thread. The mutex protects everything but the parts of a listener, which belong
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
    struct strbuf events[EVENT_HUB_KEPT]; // owned; whole events as sent, by number modulo
    uint64_t count;                       // events ever sent
    struct event_listener *listeners[EVENT_HUB_LISTENERS]; // borrowed; NULL: a free place
    bool is_over;
};

enum err event_hub_init(struct event_hub *hub) MUST_USE;
void event_hub_release(struct event_hub *hub); // nobody may listen any more

// Tells all listeners. `json` is one line. Without memory the event is left out.
void event_hub_send(struct event_hub *hub, const char *name, uint64_t id, const char *json);

// Ends all listeners.
void event_hub_end(struct event_hub *hub);

struct event_listener {
    struct event_hub *hub; // borrowed
    int wake_fd;           // owned; can be read once there is news or the end
    int client_fd;         // borrowed; the connection
    uint64_t next;         // number of the event to pass on next
    struct strbuf pending; // what is being passed on
    size_t passed;         // of pending
};

// A listener that begins with `greeting`, an event as event_format makes it. `client_fd` is the
// socket of its client. NULL if there are too many already, or no memory.
struct event_listener *
event_listener_new(struct event_hub *hub, const struct strbuf *greeting, int client_fd);
void event_listener_free(struct event_listener *listener);

// Waits for an event and writes up to `max` bytes of it. Returns how many; 0 at the end and when
// the client has left.
size_t event_listener_read(struct event_listener *listener, char *buffer, size_t max);

// Appends an event in the format of text/event-stream.
void event_format(struct strbuf *out, const char *name, uint64_t id, const char *json);
