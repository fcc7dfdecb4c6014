// SPDX-License-Identifier: MIT
// http: who connects and falls silent is hung up on, and others are served meanwhile.
#include "server/http.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "server/http/http_library.h"
#include "server/http/listener.h"

enum {
    SILENCE_S = 1,
    DEADLINE_MS = 60000, // twice what clients usually have
};

static int connect_to(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(client >= 0);
    assert_int_equal(connect(client, (const struct sockaddr *)&address, sizeof(address)), 0);
    return client;
}

static void say(int client, const char *text)
{
    assert_int_equal(send(client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

// Read until the server hangs up.
static void read_rest(int client, char *out, size_t bytes)
{
    size_t len = 0;
    ssize_t got = 1;
    while (got > 0) {
        struct pollfd readable = {.fd = client, .events = POLLIN};
        assert_int_equal(poll(&readable, 1, DEADLINE_MS), 1);
        got = recv(client, out + len, bytes - 1 - len, 0);
        len += got > 0 ? (size_t)got : 0;
    }
    out[len] = '\0';
    assert_int_equal(close(client), 0);
}

static void who_falls_silent_is_hung_up_on(void **state)
{
    (void)state;
    static const char *const beginnings[] = {
        "",
        "GET /api/v1/meta HTTP/1.1\r\nHost: loc",
        "PUT /api/v1/baseline HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\nabc",
    };
    struct err_info info = {0};
    assert_int_equal(http_library_load(&info), ERR_OK);
    struct http http = {.silence_max_s = SILENCE_S};
    assert_int_equal(event_hub_init(&http.events), ERR_OK);
    CLEANUP(listener_release) struct listener listener = {.fd = -1};
    assert_int_equal(listener_open("127.0.0.1:0", &listener, &info), ERR_OK);
    struct MHD_Daemon *daemon = http_daemon_start(&http, listener.fd, NULL, &info);
    assert_non_null(daemon);
    listener.fd = -1; // owned by the daemon from here on
    int silent[ARRAY_LEN(beginnings)];
    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++) {
        silent[i] = connect_to(listener.port);
        say(silent[i], beginnings[i]);
    }
    char text[4096];
    const int busy = connect_to(listener.port);
    say(busy, "GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    read_rest(busy, text, sizeof(text));
    assert_non_null(strstr(text, "HTTP/1.1 4"));
    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++) {
        read_rest(silent[i], text, sizeof(text));
        assert_null(strstr(text, "200 OK"));
    }
    MHD_stop_daemon(daemon);
    event_hub_release(&http.events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_falls_silent_is_hung_up_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
