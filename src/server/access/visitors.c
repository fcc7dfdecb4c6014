// SPDX-License-Identifier: MIT
#include "server/access/visitors.h"

#include <string.h>
#include <sys/socket.h>

#include "host/os/mutex.h"

static struct visitor *find_visitor(struct visitors *visitors, int fd)
{
    for (size_t i = 0; i < visitors->count; i++) {
        if (visitors->items[i].fd == fd) {
            return &visitors->items[i];
        }
    }
    return NULL;
}

static void remove_at(struct visitors *visitors, size_t at)
{
    visitors->count--;
    memmove(&visitors->items[at], &visitors->items[at + 1],
            (visitors->count - at) * sizeof(visitors->items[0]));
}

// Disconnect the oldest unknown visitor if there are too many.
static void make_room(struct visitors *visitors)
{
    size_t unknown = 0;
    size_t oldest = visitors->count;
    for (size_t i = visitors->count; i-- > 0;) {
        if (!visitors->items[i].is_known) {
            unknown++;
            oldest = i;
        }
    }
    if (unknown >= VISITORS_UNKNOWN_MAX) {
        (void)shutdown(visitors->items[oldest].fd, SHUT_RDWR); // fails if the client disconnected
        remove_at(visitors, oldest);
    }
}

void visitors_enter(struct visitors *visitors, int fd)
{
    mutex_lock(&visitors->lock);
    make_room(visitors);
    // Disconnected visitors that still have a thread have no entry; the table has room for all
    // others.
    if (visitors->count < VISITORS_MAX) {
        visitors->items[visitors->count++] = (struct visitor){.fd = fd};
    }
    mutex_unlock(&visitors->lock);
}

void visitors_trust(struct visitors *visitors, int fd)
{
    mutex_lock(&visitors->lock);
    struct visitor *visitor = find_visitor(visitors, fd);
    if (visitor != NULL) {
        visitor->is_known = true;
    }
    mutex_unlock(&visitors->lock);
}

void visitors_leave(struct visitors *visitors, int fd)
{
    mutex_lock(&visitors->lock);
    struct visitor *visitor = find_visitor(visitors, fd);
    if (visitor != NULL) {
        remove_at(visitors, (size_t)(visitor - visitors->items));
    }
    mutex_unlock(&visitors->lock);
}
