// SPDX-License-Identifier: MIT
// listener on addresses as users write them.
#include "server/http/listener.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const addresses[] = {
        "",      ":",    ":80",    "127.0.0.1",       "127.0.0.1:",   "127.0.0.1:x", "127.0.0.1:",
        "[::1]", "[]:1", "::1:80", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1 "};
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        CLEANUP(listener_release) struct listener listener = {.fd = -1};
        struct err_info info = {0};
        if (listener_open(addresses[i], &listener, &info) != ERR_INVALID || info.text[0] == '\0') {
            fail_msg("\"%s\": %d %s", addresses[i], info.code, info.text);
        }
    }
    char host[256 + sizeof(":80")] = ""; // the first that is too long
    memset(host, 'x', 256);
    memcpy(host + 256, ":80", sizeof(":80"));
    CLEANUP(listener_release) struct listener far = {.fd = -1};
    struct err_info why = {0};
    assert_int_equal(listener_open(host, &far, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "is not an address"));
    char path[300] = "/";
    memset(path + 1, 'x', sizeof(path) - 2);
    CLEANUP(listener_release) struct listener listener = {.fd = -1};
    struct err_info info = {0};
    assert_int_equal(listener_open(path, &listener, &info), ERR_INVALID);
}

static void a_tcp_socket_has_its_port_and_its_reach(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        const char *host;
        bool is_loopback;
    } cases[] = {
        {"127.0.0.1:0", "127.0.0.1:", true},
        {"127.9.8.7:0", "127.9.8.7:", true},
        {"0.0.0.0:0", "0.0.0.0:", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(listener_release) struct listener listener = {.fd = -1};
        struct err_info info = {0};
        if (listener_open(cases[i].address, &listener, &info) != ERR_OK) {
            fail_msg("%s: %s", cases[i].address, info.text);
        }
        char name[64];
        (void)snprintf(name, sizeof(name), "%s%u", cases[i].host, (unsigned)listener.port);
        assert_string_equal(strbuf_text(&listener.name), name);
        assert_int_not_equal(listener.port, 0);
        assert_int_equal(listener.is_loopback, cases[i].is_loopback);
        assert_false(listener.is_unix);
        assert_true((fcntl(listener.fd, F_GETFD) & FD_CLOEXEC) != 0);
        // It is taken now.
        CLEANUP(listener_release) struct listener second = {.fd = -1};
        assert_int_not_equal(listener_open(name, &second, &info), ERR_OK);
        assert_non_null(strstr(info.text, name));
    }
}

static void a_unix_socket_is_private_and_removed_by_its_owner_only(void **state)
{
    (void)state;
    char folder[] = "/tmp/listener.XXXXXX";
    char path[64];
    struct stat status;
    struct err_info info = {0};
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/socket", folder);
    struct listener first = {.fd = -1};
    CLEANUP(listener_release) struct listener second = {.fd = -1};
    assert_int_equal(listener_open(path, &first, &info), ERR_OK);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_not_equal(listener_open(path, &second, &info), ERR_OK); // it is served
    // No process serves it any more: replaced, and its first owner leaves the new one alone.
    assert_int_equal(close(first.fd), 0);
    first.fd = -1;
    assert_int_equal(listener_open(path, &second, &info), ERR_OK);
    listener_remove(&first);
    assert_int_equal(access(path, F_OK), second.inode == first.inode ? -1 : 0);
    listener_remove(&second);
    assert_int_equal(access(path, F_OK), -1);
    listener_release(&first);
    assert_int_equal(rmdir(folder), 0);
}

enum {
    STARTERS = 4,
    RACES = 100,
};

// Listen once `start` is closed, tell whether that worked, and keep on until `end` is closed.
static void compete(const char *path, const int start[2], const int told[2], const int end[2])
{
    char byte = 0;
    struct listener listener = {.fd = -1};
    struct err_info info = {0};
    (void)close(start[1]);
    (void)close(end[1]);
    (void)!read(start[0], &byte, 1);
    const bool listens = listener_open(path, &listener, &info) == ERR_OK;
    (void)!write(told[1], listens ? "1" : "0", 1);
    (void)!read(end[0], &byte, 1);
    _exit(0); // its socket's file stays, dead
}

// Let some start at once, and return how many listen.
static int race(const char *path)
{
    int start[2];
    int told[2];
    int end[2];
    int listening = 0;
    assert_int_equal(pipe(start) | pipe(told) | pipe(end), 0);
    for (int i = 0; i < STARTERS; i++) {
        const pid_t child = fork();
        assert_int_not_equal(child, -1);
        if (child == 0) {
            compete(path, start, told, end);
        }
    }
    (void)close(start[1]);
    for (int i = 0; i < STARTERS; i++) {
        char answer = 0;
        assert_int_equal(read(told[0], &answer, 1), 1);
        listening += answer == '1';
    }
    (void)close(end[1]);
    for (int i = 0; i < STARTERS; i++) {
        assert_int_not_equal(wait(NULL), -1);
    }
    const int rest[] = {start[0], told[0], told[1], end[0]};
    for (size_t i = 0; i < ARRAY_LEN(rest); i++) {
        (void)close(rest[i]);
    }
    return listening;
}

static void of_several_that_start_at_once_one_listens(void **state)
{
    (void)state;
    char folder[] = "/tmp/listener.XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/socket", folder);
    for (int i = 0; i < RACES; i++) { // all but the first find a dead socket
        assert_int_equal(race(path), 1);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(a_tcp_socket_has_its_port_and_its_reach),
        cmocka_unit_test(a_unix_socket_is_private_and_removed_by_its_owner_only),
        cmocka_unit_test(of_several_that_start_at_once_one_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
