// SPDX-License-Identifier: MIT
// control_socket: requests of any form, clients that say nothing or too much, and replies that come
// later.
#include "recorder/control/control_socket.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "recorder/control/test_network.h"

enum {
    NOTHING_YET = -2, // of receive
};

struct served {
    struct control_socket socket;
    char word[64];
    char text[CONTROL_REQUEST_BYTES_MAX + 1];
    unsigned requests;
    uint64_t number; // that a client waits for
};

// Answer "+WORD", or nothing before that number.
static uint64_t answer(void *context, const char *word, const char *text, struct strbuf *reply)
{
    struct served *s = context;
    s->requests++;
    (void)snprintf(s->word, sizeof(s->word), "%s", word);
    (void)snprintf(s->text, sizeof(s->text), "%s", text);
    strbuf_append_char(reply, '+');
    strbuf_append_text(reply, word);
    return s->number;
}

static void serve(struct served *s)
{
    const struct control_handler handler = {.context = s, .answer = answer};
    control_socket_poll(&s->socket, &handler);
}

static void open_socket(struct served *s)
{
    memset(s, 0, sizeof(*s));
    assert_int_equal(control_socket_open(&s->socket, NULL), ERR_OK);
}

static int connect_client(const struct served *s)
{
    struct sockaddr_un address;
    socklen_t bytes = sizeof(address);
    assert_int_equal(getsockname(s->socket.listener, (struct sockaddr *)&address, &bytes), 0);
    const int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_true(client >= 0);
    assert_int_equal(connect(client, (const struct sockaddr *)&address, bytes), 0);
    return client;
}

static void send_text(int client, const char *text)
{
    assert_int_equal(send(client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

// Return the length of what has arrived; 0 if the recorder has closed the connection.
static ssize_t receive(int client, char out[64])
{
    const ssize_t len = recv(client, out, 63, MSG_DONTWAIT);
    out[len > 0 ? len : 0] = '\0';
    return len < 0 && errno == EAGAIN ? NOTHING_YET : len < 0 ? 0 : len;
}

static void the_socket_has_the_name_that_clients_look_for(void **state)
{
    (void)state;
    struct served s;
    open_socket(&s);
    struct sockaddr_un address;
    socklen_t bytes = sizeof(address);
    assert_int_equal(getsockname(s.socket.listener, (struct sockaddr *)&address, &bytes), 0);
    char prefix[64];
    const int len = snprintf(prefix, sizeof(prefix), CONTROL_NAME_PREFIX "%u-", (unsigned)getpid());
    assert_int_equal(address.sun_path[0], '\0');
    assert_memory_equal(address.sun_path + 1, prefix, (size_t)len);
    assert_int_equal(bytes, offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len + 16);
    control_socket_close(&s.socket);
    control_socket_close(&s.socket); // a closed one is empty
    assert_int_equal(s.socket.listener, -1);
    serve(&s);
    control_socket_announce(&s.socket, 1, "+");
}

static void a_request_is_a_word_and_a_text(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"status", "status", ""},      {"mark ", "mark", ""}, {"mark a text", "mark", "a text"},
        {"mark  two", "mark", " two"}, {" x", "", "x"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct served s;
        char reply[64];
        open_socket(&s);
        const int client = connect_client(&s);
        send_text(client, cases[i][0]);
        serve(&s);
        assert_string_equal(s.word, cases[i][1]);
        assert_string_equal(s.text, cases[i][2]);
        assert_int_equal(receive(client, reply), 1 + strlen(cases[i][1]));
        assert_int_equal(reply[0], '+');
        assert_string_equal(reply + 1, cases[i][1]);
        assert_int_equal(receive(client, reply), 0); // one request, one reply
        assert_int_equal(close(client), 0);
        control_socket_close(&s.socket);
    }
}

static void a_request_that_is_too_long_is_cut(void **state)
{
    (void)state;
    static char request[CONTROL_REQUEST_BYTES_MAX + 2];
    for (size_t more = 0; more < 2; more++) {
        struct served s;
        open_socket(&s);
        memset(request, 'x', CONTROL_REQUEST_BYTES_MAX + more);
        request[1] = ' ';
        const int client = connect_client(&s);
        send_text(client, request);
        serve(&s);
        assert_int_equal(strlen(s.text), CONTROL_REQUEST_BYTES_MAX - 2);
        assert_int_equal(close(client), 0);
        control_socket_close(&s.socket);
    }
}

// The recorder never waits for one, and goes on with the others.
static void clients_that_say_nothing_wait_until_their_place_is_needed(void **state)
{
    (void)state;
    enum {
        SILENT = CONTROL_CLIENTS_MAX,
        DISPLACED = 3
    };
    struct served s;
    char reply[64];
    int silent[SILENT];
    open_socket(&s);
    for (size_t i = 0; i < SILENT; i++) {
        silent[i] = connect_client(&s);
        serve(&s);
        assert_int_equal(receive(silent[i], reply), NOTHING_YET);
    }
    for (size_t i = 0; i < DISPLACED; i++) {
        assert_int_equal(receive(silent[i], reply), NOTHING_YET);
        const int other = connect_client(&s);
        serve(&s); // it has said nothing when it is accepted
        assert_int_equal(receive(silent[i], reply), 0);
        send_text(other, "late");
        serve(&s);
        assert_int_equal(receive(other, reply), 5);
        assert_int_equal(close(other), 0);
        // Its place is free again: the next client displaces none.
        const int next = connect_client(&s);
        serve(&s);
        assert_int_equal(receive(silent[i + 1], reply), NOTHING_YET);
        silent[i] = dup(next);
        assert_int_equal(close(next), 0);
    }
    for (size_t i = DISPLACED; i < SILENT; i++) {
        send_text(silent[i], "x");
        serve(&s);
        assert_int_equal(receive(silent[i], reply), 2);
    }
    assert_int_equal(s.requests, DISPLACED + SILENT - DISPLACED);
    for (size_t i = 0; i < SILENT; i++) {
        assert_int_equal(close(silent[i]), 0);
    }
    control_socket_close(&s.socket);
}

static void a_client_that_goes_leaves_its_place(void **state)
{
    (void)state;
    struct served s;
    char reply[64];
    open_socket(&s);
    const int silent = connect_client(&s);
    serve(&s);
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        const int going = connect_client(&s);
        serve(&s);
        assert_int_equal(close(going), 0);
        serve(&s);
    }
    assert_int_equal(receive(silent, reply), NOTHING_YET);
    assert_int_equal(s.requests, 0);
    assert_int_equal(close(silent), 0);
    control_socket_close(&s.socket);
}

static void a_number_is_announced_to_those_who_wait_for_it(void **state)
{
    (void)state;
    struct served s;
    char reply[64];
    int clients[3];
    open_socket(&s);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i] = connect_client(&s);
        s.number = 5 + i;
        send_text(clients[i], "checkpoint");
        serve(&s);
        assert_int_equal(receive(clients[i], reply), NOTHING_YET);
    }
    const int silent = connect_client(&s);
    serve(&s);
    control_socket_announce(&s.socket, 4, "+four");
    assert_int_equal(receive(clients[0], reply), NOTHING_YET);
    control_socket_announce(&s.socket, 6, "+six");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(receive(clients[i], reply), 4);
        assert_string_equal(reply, "+six");
        assert_int_equal(receive(clients[i], reply), 0);
    }
    assert_int_equal(receive(clients[2], reply), NOTHING_YET);
    assert_int_equal(receive(silent, reply), NOTHING_YET);
    // It should wait, and sends another request.
    send_text(clients[2], "impatient");
    serve(&s);
    assert_int_equal(receive(clients[2], reply), 0);
    assert_int_equal(s.requests, 3);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        assert_int_equal(close(clients[i]), 0);
    }
    assert_int_equal(close(silent), 0);
    control_socket_close(&s.socket);
}

// Their requests would be obeyed twice if they asked again.
static void a_client_that_waits_for_a_number_keeps_its_place(void **state)
{
    (void)state;
    enum {
        WAITING = CONTROL_CLIENTS_MAX - 1
    };
    struct served s;
    char reply[64];
    int waiting[CONTROL_CLIENTS_MAX];
    open_socket(&s);
    s.number = 1;
    for (size_t i = 0; i < WAITING; i++) {
        waiting[i] = connect_client(&s);
        send_text(waiting[i], "checkpoint");
        serve(&s);
    }
    const int silent = connect_client(&s);
    serve(&s);
    waiting[WAITING] = connect_client(&s);
    send_text(waiting[WAITING], "checkpoint");
    serve(&s);
    assert_int_equal(receive(silent, reply), 0); // the only one that could give its place
    const int refused = connect_client(&s);
    send_text(refused, "checkpoint");
    serve(&s);
    assert_int_not_equal(receive(refused, reply), NOTHING_YET); // closed, unheard
    assert_int_equal(s.requests, CONTROL_CLIENTS_MAX);
    control_socket_announce(&s.socket, 1, "+one");
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        assert_int_equal(receive(waiting[i], reply), 4);
        assert_int_equal(close(waiting[i]), 0);
    }
    assert_int_equal(close(silent), 0);
    assert_int_equal(close(refused), 0);
    control_socket_close(&s.socket);
}

static void a_client_that_waits_for_a_change_gives_its_place(void **state)
{
    (void)state;
    struct served s;
    char reply[64];
    int waiting[CONTROL_CLIENTS_MAX];
    open_socket(&s);
    s.number = CONTROL_CHANGE;
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        waiting[i] = connect_client(&s);
        send_text(waiting[i], "change");
        serve(&s);
    }
    control_socket_announce(&s.socket, CONTROL_CHANGE - 1, "+no change");
    assert_int_equal(receive(waiting[0], reply), NOTHING_YET);
    s.number = 0;
    const int other = connect_client(&s);
    send_text(other, "status");
    serve(&s);
    assert_int_equal(receive(other, reply), 7);
    assert_int_equal(receive(waiting[0], reply), 0); // it need not ask again to know as much
    control_socket_announce_change(&s.socket, "+changed");
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        assert_int_equal(receive(waiting[i], reply), i > 0 ? 8 : 0);
        assert_int_equal(close(waiting[i]), 0);
    }
    assert_int_equal(close(other), 0);
    control_socket_close(&s.socket);
}

static void all_that_wait_are_heard_at_once(void **state)
{
    (void)state;
    enum {
        CLIENTS = 12
    };
    struct served s;
    char reply[64];
    int clients[CLIENTS];
    open_socket(&s);
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = connect_client(&s);
        send_text(clients[i], "is");
    }
    serve(&s);
    assert_int_equal(s.requests, CLIENTS);
    for (size_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(receive(clients[i], reply), 3);
        assert_int_equal(close(clients[i]), 0);
    }
    control_socket_close(&s.socket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_socket_has_the_name_that_clients_look_for),
        cmocka_unit_test(a_request_is_a_word_and_a_text),
        cmocka_unit_test(a_request_that_is_too_long_is_cut),
        cmocka_unit_test(clients_that_say_nothing_wait_until_their_place_is_needed),
        cmocka_unit_test(a_client_that_goes_leaves_its_place),
        cmocka_unit_test(a_number_is_announced_to_those_who_wait_for_it),
        cmocka_unit_test(a_client_that_waits_for_a_number_keeps_its_place),
        cmocka_unit_test(a_client_that_waits_for_a_change_gives_its_place),
        cmocka_unit_test(all_that_wait_are_heard_at_once),
    };
    return cmocka_run_group_tests(tests, leave_network, NULL);
}
