// SPDX-License-Identifier: MIT
// http_client_test: which URLs and credentials are accepted. Requests are tested by
// tests/e2e/test_push.py against a collector that misbehaves.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_credentials_of_a_file),
        cmocka_unit_test(test_credentials_of_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
