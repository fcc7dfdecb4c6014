// SPDX-License-Identifier: MIT
// Tests of event_hub: listeners receive each event once, in order, and all end together.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "server/http/event_hub.h"

static struct event_listener *listen_by(struct event_hub *hub, int client_fd)
{
    CLEANUP(strbuf_release) struct strbuf greeting = {0};
    event_format(&greeting, "hello", 1, "{}");
    return event_listener_new(hub, &greeting, client_fd);
}

// A listener whose client never disconnects.
static struct event_listener *listen_to(struct event_hub *hub)
{
    return listen_by(hub, -1);
}

// Read exactly the bytes of `wanted`, at most `part` bytes at a time.
static void expect_read(struct event_listener *listener, const char *wanted, size_t part)
{
    char got[256] = "";
    size_t len = 0;
    while (len < strlen(wanted)) {
        size_t read = event_listener_read(listener, got + len, part);
        assert_int_not_equal(read, 0);
        len += read;
    }
    got[len] = '\0';
    assert_string_equal(got, wanted);
}

static void events_are_heard_once_and_in_order(void **state)
{
    (void)state;
    struct event_hub hub;
    assert_int_equal(event_hub_init(&hub), ERR_OK);
    event_hub_send(&hub, "early", 1, "{}"); // without listeners
    struct event_listener *first = listen_to(&hub);
    struct event_listener *second = listen_to(&hub);
    assert_non_null(first);
    assert_non_null(second);
    event_hub_send(&hub, "recording", 2, "{\"generation\":2}");
    event_hub_send(&hub, "recording", 3, "{\"generation\":3}");
    expect_read(first, "event: hello\nid: 1\ndata: {}\n\n", 7);
    expect_read(first, "event: recording\nid: 2\ndata: {\"generation\":2}\n\n", 200);
    expect_read(first, "event: recording\nid: 3\ndata: {\"generation\":3}\n\n", 1);
    expect_read(second, "event: hello\nid: 1\ndata: {}\n\n", 100);
    expect_read(second, "event: recording\nid: 2\ndata: {\"generation\":2}\n\n", 100);
    event_listener_free(first);
    event_listener_free(second);
    event_hub_release(&hub);
}

static void one_that_falls_behind_misses_the_oldest(void **state)
{
    (void)state;
    struct event_hub hub;
    assert_int_equal(event_hub_init(&hub), ERR_OK);
    struct event_listener *listener = listen_to(&hub);
    assert_non_null(listener);
    expect_read(listener, "event: hello\nid: 1\ndata: {}\n\n", 100);
    for (uint64_t i = 0; i < EVENT_HUB_KEPT + 3; i++) {
        event_hub_send(&hub, "e", i, "{}");
    }
    for (uint64_t i = 3; i < EVENT_HUB_KEPT + 3; i++) {
        char wanted[64];
        (void)snprintf(wanted, sizeof(wanted), "event: e\nid: %lu\ndata: {}\n\n", (unsigned long)i);
        expect_read(listener, wanted, 100);
    }
    event_listener_free(listener);
    event_hub_release(&hub);
}

static void only_so_many_may_listen(void **state)
{
    (void)state;
    struct event_hub hub;
    struct event_listener *listeners[EVENT_HUB_LISTENERS];
    assert_int_equal(event_hub_init(&hub), ERR_OK);
    for (size_t i = 0; i < EVENT_HUB_LISTENERS; i++) {
        listeners[i] = listen_to(&hub);
        assert_non_null(listeners[i]);
    }
    assert_null(listen_to(&hub));
    event_listener_free(listeners[0]);
    listeners[0] = listen_to(&hub);
    assert_non_null(listeners[0]);
    for (size_t i = 0; i < EVENT_HUB_LISTENERS; i++) {
        event_listener_free(listeners[i]);
    }
    event_hub_release(&hub);
}

static void *read_to_the_end(void *listener)
{
    char buffer[64];
    while (event_listener_read(listener, buffer, sizeof(buffer)) > 0) {
    }
    return NULL;
}

static void the_end_wakes_everybody(void **state)
{
    (void)state;
    enum {
        READERS = 4
    };
    struct event_hub hub;
    struct event_listener *listeners[READERS];
    pthread_t threads[READERS];
    assert_int_equal(event_hub_init(&hub), ERR_OK);
    for (size_t i = 0; i < READERS; i++) {
        listeners[i] = listen_to(&hub);
        assert_int_equal(pthread_create(&threads[i], NULL, read_to_the_end, listeners[i]), 0);
    }
    event_hub_send(&hub, "e", 1, "{}");
    event_hub_end(&hub);
    for (size_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        event_listener_free(listeners[i]);
    }
    assert_null(listen_to(&hub));
    event_hub_release(&hub);
}

static void one_whose_client_leaves_is_reported_at_once(void **state)
{
    (void)state;
    struct event_hub hub;
    int ends[2];
    char buffer[64];
    assert_int_equal(event_hub_init(&hub), ERR_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    struct event_listener *listener = listen_by(&hub, ends[0]);
    assert_non_null(listener);
    event_hub_send(&hub, "e", 1, "{}");
    expect_read(listener, "event: hello\nid: 1\ndata: {}\n\n", 100);
    expect_read(listener, "event: e\nid: 1\ndata: {}\n\n", 100);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(event_listener_read(listener, buffer, sizeof(buffer)), 0);
    event_listener_free(listener);
    assert_int_equal(close(ends[0]), 0);
    event_hub_release(&hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_heard_once_and_in_order),
        cmocka_unit_test(one_that_falls_behind_misses_the_oldest),
        cmocka_unit_test(only_so_many_may_listen),
        cmocka_unit_test(the_end_wakes_everybody),
        cmocka_unit_test(one_whose_client_leaves_is_reported_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
