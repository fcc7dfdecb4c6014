// SPDX-License-Identifier: MIT
#include "server/http/event_hub.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/os/mutex.h"

enum {
    SILENCE_MAX_MS = 15000
};

enum err event_hub_init(struct event_hub *hub)
{
    *hub = (struct event_hub){0};
    return pthread_mutex_init(&hub->mutex, NULL) == 0 ? ERR_OK : ERR_NO_MEMORY;
}

void event_hub_release(struct event_hub *hub)
{
    for (size_t i = 0; i < EVENT_HUB_KEPT; i++) {
        strbuf_release(&hub->events[i]);
    }
    (void)pthread_mutex_destroy(&hub->mutex); // cannot fail: no thread holds it
}

// Wake all listeners. The caller holds the mutex.
static void wake_all(struct event_hub *hub)
{
    for (size_t i = 0; i < EVENT_HUB_LISTENERS; i++) {
        if (hub->listeners[i] != NULL) {
            (void)eventfd_write(hub->listeners[i]->wake_fd, 1); // fails only if readable already
        }
    }
}

void event_format(struct strbuf *out, const char *name, uint64_t id, const char *json)
{
    strbuf_printf(out, "event: %s\nid: %" PRIu64 "\ndata: %s\n\n", name, id, json);
}

void event_hub_send(struct event_hub *hub, const char *name, uint64_t id, const char *json)
{
    mutex_lock(&hub->mutex);
    struct strbuf *event = &hub->events[hub->count % EVENT_HUB_KEPT];
    strbuf_clear(event);
    event_format(event, name, id, json);
    if (!event->failed) {
        hub->count++;
        wake_all(hub);
    }
    mutex_unlock(&hub->mutex);
}

void event_hub_end(struct event_hub *hub)
{
    mutex_lock(&hub->mutex);
    hub->is_over = true;
    wake_all(hub);
    mutex_unlock(&hub->mutex);
}

// Find the place of `wanted` among the listeners; NULL finds a free one. The caller holds the
// mutex.
static struct event_listener **find_place(struct event_hub *hub, struct event_listener *wanted)
{
    for (size_t i = 0; i < EVENT_HUB_LISTENERS; i++) {
        if (hub->listeners[i] == wanted) {
            return &hub->listeners[i];
        }
    }
    return NULL;
}

static bool join_hub(struct event_listener *listener)
{
    struct event_hub *hub = listener->hub;
    mutex_lock(&hub->mutex);
    struct event_listener **place = hub->is_over ? NULL : find_place(hub, NULL);
    if (place != NULL) {
        *place = listener;
        listener->next = hub->count;
    }
    mutex_unlock(&hub->mutex);
    return place != NULL;
}

static void discard_listener(struct event_listener *listener)
{
    fd_closep(&listener->wake_fd);
    strbuf_release(&listener->pending);
    free(listener);
}

struct event_listener *
event_listener_new(struct event_hub *hub, const struct strbuf *greeting, int client_fd)
{
    struct event_listener *listener = calloc(1, sizeof(*listener));
    if (listener == NULL) {
        return NULL;
    }
    listener->hub = hub;
    listener->client_fd = client_fd;
    listener->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    strbuf_append(&listener->pending, strbuf_text(greeting), greeting->len);
    if (listener->wake_fd < 0 || listener->pending.failed || !join_hub(listener)) {
        discard_listener(listener);
        return NULL;
    }
    return listener;
}

void event_listener_free(struct event_listener *listener)
{
    struct event_hub *hub = listener->hub;
    mutex_lock(&hub->mutex);
    *find_place(hub, listener) = NULL;
    mutex_unlock(&hub->mutex);
    discard_listener(listener);
}

// Why a wait ended.
enum wait_end {
    WAIT_NEWS, // or the end of the stream
    WAIT_SILENCE,
    WAIT_CLIENT_LEFT,
};

// Wait for an event, a timeout or a disconnection. Earlier events count: the descriptor stays
// readable.
static enum wait_end wait_for_news(const struct event_listener *listener)
{
    struct pollfd fds[] = {{.fd = listener->wake_fd, .events = POLLIN},
                           {.fd = listener->client_fd, .events = POLLRDHUP}};
    int ready = poll(fds, ARRAY_LEN(fds), SILENCE_MAX_MS);
    if (ready > 0 && fds[1].revents != 0) {
        return WAIT_CLIENT_LEFT;
    }
    return ready == 0 ? WAIT_SILENCE : WAIT_NEWS;
}

// Take the next event, if there is one. Return false at the end. The caller holds the mutex.
static bool take_event(struct event_listener *listener)
{
    struct event_hub *hub = listener->hub;
    eventfd_t ignored;
    (void)eventfd_read(listener->wake_fd, &ignored); // fails only if there is nothing to read
    if (hub->is_over) {
        return false;
    }
    if (listener->next == hub->count) {
        return true;
    }
    uint64_t oldest = hub->count > EVENT_HUB_KEPT ? hub->count - EVENT_HUB_KEPT : 0;
    listener->next = max_u64(listener->next, oldest);
    const struct strbuf *event = &hub->events[listener->next % EVENT_HUB_KEPT];
    strbuf_append(&listener->pending, strbuf_text(event), event->len);
    listener->next++;
    return true;
}

// Fill `pending` with the next event, or with a comment after a timeout. Return false at the end.
static bool fetch_events(struct event_listener *listener)
{
    strbuf_clear(&listener->pending);
    listener->passed = 0;
    for (;;) {
        mutex_lock(&listener->hub->mutex);
        bool goes_on = take_event(listener);
        mutex_unlock(&listener->hub->mutex);
        if (!goes_on || listener->pending.failed) { // out of memory: the client reconnects
            return false;
        }
        if (listener->pending.len > 0) {
            return true;
        }
        enum wait_end end = wait_for_news(listener);
        if (end == WAIT_CLIENT_LEFT) {
            return false;
        }
        if (end == WAIT_SILENCE) {
            strbuf_append_text(&listener->pending, ":\n\n");
            return !listener->pending.failed;
        }
    }
}

size_t event_listener_read(struct event_listener *listener, char *buffer, size_t max)
{
    if (listener->passed == listener->pending.len && !fetch_events(listener)) {
        return 0;
    }
    size_t left = listener->pending.len - listener->passed;
    size_t len = left < max ? left : max;
    memcpy(buffer, listener->pending.data + listener->passed, len);
    listener->passed += len;
    return len;
}
