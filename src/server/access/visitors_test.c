// SPDX-License-Identifier: MIT
// Tests of visitors: which connections are shut down, observed on pairs of connected sockets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/access/visitors.h"

struct pair {
    int server;
    int client;
};

static struct pair connect_pair(void)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    return (struct pair){fds[0], fds[1]};
}

static bool is_hung_up_on(struct pair pair)
{
    char byte;
    return read(pair.client, &byte, 1) == 0;
}

static void part(struct visitors *visitors, struct pair pair)
{
    visitors_leave(visitors, pair.server);
    assert_int_equal(close(pair.server), 0);
    assert_int_equal(close(pair.client), 0);
}

static void the_oldest_unknown_one_gives_way(void **state)
{
    (void)state;
    enum {
        MORE = 3
    };
    struct visitors visitors = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct pair known = connect_pair();
    struct pair others[VISITORS_UNKNOWN_MAX + MORE];
    visitors_enter(&visitors, known.server);
    visitors_trust(&visitors, known.server);
    for (size_t i = 0; i < VISITORS_UNKNOWN_MAX + MORE; i++) {
        others[i] = connect_pair();
        visitors_enter(&visitors, others[i].server);
    }
    assert_false(is_hung_up_on(known));
    for (size_t i = 0; i < VISITORS_UNKNOWN_MAX + MORE; i++) {
        assert_int_equal(is_hung_up_on(others[i]), i < MORE);
    }
    assert_int_equal(visitors.count, VISITORS_UNKNOWN_MAX + 1);
    for (size_t i = 0; i < VISITORS_UNKNOWN_MAX + MORE; i++) {
        part(&visitors, others[i]);
    }
    part(&visitors, known);
    assert_int_equal(visitors.count, 0);
}

static void who_leaves_makes_room_himself(void **state)
{
    (void)state;
    struct visitors visitors = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct pair first = connect_pair();
    visitors_enter(&visitors, first.server);
    for (size_t i = 0; i < (size_t)VISITORS_MAX * 2; i++) {
        struct pair pair = connect_pair();
        visitors_enter(&visitors, pair.server);
        part(&visitors, pair);
    }
    assert_false(is_hung_up_on(first));
    part(&visitors, first);
}

static void as_many_known_ones_as_the_server_takes(void **state)
{
    (void)state;
    struct visitors visitors = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct pair pairs[VISITORS_MAX];
    for (size_t i = 0; i < VISITORS_MAX; i++) {
        pairs[i] = connect_pair();
        visitors_enter(&visitors, pairs[i].server);
        visitors_trust(&visitors, pairs[i].server);
    }
    visitors_enter(&visitors, -1); // not entered, and harmless
    for (size_t i = 0; i < VISITORS_MAX; i++) {
        assert_false(is_hung_up_on(pairs[i]));
        part(&visitors, pairs[i]);
    }
    visitors_trust(&visitors, -1);
    visitors_leave(&visitors, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_unknown_one_gives_way),
        cmocka_unit_test(who_leaves_makes_room_himself),
        cmocka_unit_test(as_many_known_ones_as_the_server_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
