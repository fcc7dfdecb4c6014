// SPDX-License-Identifier: MIT
// http_client_test: which URLs and credentials are accepted, and what an endless header is called.
// Other requests are tested by tests/e2e/test_push.py against a collector that misbehaves.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/http/http_client.h"
#include "host/http/http_credentials.h"
#include "host/os/file.h"

static void test_urls(void **state)
{
    static const struct {
        const char *url;
        bool has_credentials;
        const char *refusal; // NULL: accepted
    } cases[] = {
        {"http://collector:4040", false, NULL},
        {"HTTPS://collector/path?x=y@z", true, NULL},
        {"http://localhost:4040/ingest", true, NULL},
        {"http://127.0.0.1", true, NULL},
        {"http://[::1]:80/", true, NULL},
        {"http://collector:4040", true, "credentials need https://"},
        {"http://localhost.evil.example/", true, "credentials need https://"},
        {"http://127.0.0.1.evil.example/", true, "credentials need https://"},
        {"http://[::1].evil.example/", true, "credentials need https://"},
        {"http://user:secret@collector/", false, "credentials do not belong into the URL"},
        {"https://token@collector", false, "credentials do not belong into the URL"},
        {"file:///etc/passwd", false, "must begin with http"},
        {"collector:4040", false, "must begin with http"},
        {"", false, "must begin with http"},
        {"http://", false, "no host"},
        {"https://:80/", false, "no host"},
        {"http://collector:65535/", false, NULL},
        {"http://collector:/", false, NULL},
        {"http://127.0.0.1:99999/", false, "the port of the URL is not a number from 1 to 65535"},
        {"http://collector:0", false, "the port"},
        {"http://collector:123456789012345678901234567890", false, "the port"},
        {"http://collector:x/", false, "the port"},
        {"http://[::1]:70000/", false, "the port"},
        {"http://a/ b", false, "blank"},
        {"http://a/\nb", false, "blank"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err_info info = {0};
        const enum err err =
            http_client_check_url(cases[i].url, cases[i].has_credentials, "--option", &info);
        if (cases[i].refusal == NULL ? err != ERR_OK
                                     : err != ERR_INVALID || !strstr(info.text, cases[i].refusal)) {
            fail_msg("'%s': status %d, \"%s\"", cases[i].url, (int)err, info.text);
        }
    }
}

static enum err read_from(const char *content, size_t len, char **out)
{
    char path[] = "/tmp/credentials.XXXXXX";
    struct err_info info = {0};
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, len), (ssize_t)len);
    (void)close(fd);
    const enum err err = http_credentials_read(path, "CAIRN_TEST_AUTH", "--option", out, &info);
    (void)unlink(path);
    return err;
}

static void test_credentials_of_a_file(void **state)
{
    static const struct {
        const char *content;
        size_t len;
        const char *wanted; // NULL: refused
    } cases[] = {
        {"token\n", 6, "token"}, {"user:pass word\r\nmore", 20, "user:pass word"},
        {"x", 1, "x"},           {"", 0, NULL},
        {"\ntoken\n", 7, NULL},  {"to\0ken\n", 7, NULL},
        {"a\tb\n", 4, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(text_freep) char *got = NULL;
        const enum err err = read_from(cases[i].content, cases[i].len, &got);
        assert_int_equal(err, cases[i].wanted != NULL ? ERR_OK : ERR_INVALID);
        if (cases[i].wanted != NULL) {
            assert_string_equal(got, cases[i].wanted);
        }
    }
}

static void test_credentials_of_the_environment(void **state)
{
    struct err_info info = {0};
    CLEANUP(text_freep) char *got = NULL;
    (void)state;
    assert_int_equal(http_credentials_read(NULL, "CAIRN_TEST_AUTH", "--option", &got, &info),
                     ERR_OK);
    assert_null(got);
    assert_int_equal(setenv("CAIRN_TEST_AUTH", "user:secret", 1), 0);
    assert_int_equal(http_credentials_read(NULL, "CAIRN_TEST_AUTH", "--option", &got, &info),
                     ERR_OK);
    assert_string_equal(got, "user:secret");
    assert_null(getenv("CAIRN_TEST_AUTH")); // no program inherits it
    assert_int_equal(setenv("CAIRN_TEST_AUTH", "a\r\nX: y", 1), 0);
    char *none = NULL;
    assert_int_equal(http_credentials_read(NULL, "CAIRN_TEST_AUTH", "--option", &none, &info),
                     ERR_INVALID);
}

// A server that answers its only request with `start`, and then with `part` for as long as the
// client reads.
struct endless_server {
    int listener;
    const char *start;
    const char *part;
    uint16_t port;
    pthread_t thread;
};

static bool send_text(int line, const char *text)
{
    const size_t len = strlen(text);
    return send(line, text, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static void *answer_without_end(void *context)
{
    const struct endless_server *server = context;
    char request[4096];
    const int line = accept(server->listener, NULL, NULL);
    bool is_read = recv(line, request, sizeof(request), 0) > 0 && send_text(line, server->start);
    while (is_read) {
        is_read = send_text(line, server->part);
    }
    (void)close(line);
    return NULL;
}

static void start_server(struct endless_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(server->listener, 1), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, answer_without_end, server), 0);
}

// libcurl has a bound of its own for a line, and calls that a lack of memory.
static void test_an_endless_header_is_said_as_that(void **state)
{
    static const struct {
        const char *start;
        const char *part;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nX: ",
         "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"},
        {"HTTP/1.1 200 OK\r\n", "X: y\r\nX: y\r\nX: y\r\nX: y\r\nX: y\r\nX: y\r\nX: y\r\nX: y\r\n"},
    };
    const struct http_client_options options = {.timeout_ms = 60000, .body_max_bytes = 1};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct endless_server server = {.start = cases[i].start, .part = cases[i].part};
        struct http_client *client = NULL;
        struct http_answer answer = {0};
        struct err_info info = {0};
        char url[64];
        start_server(&server);
        (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", (unsigned)server.port);
        const struct http_request request = {.url = url};
        assert_int_equal(http_client_new(&options, &client, &info), ERR_OK);
        assert_int_equal(http_client_send(client, &request, &answer, &info), ERR_IO);
        assert_string_equal(err_text(&info), "the header of the server's answer is too long");
        http_client_free(client);
        assert_int_equal(pthread_join(server.thread, NULL), 0);
        (void)close(server.listener);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_credentials_of_a_file),
        cmocka_unit_test(test_credentials_of_the_environment),
        cmocka_unit_test(test_an_endless_header_is_said_as_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
