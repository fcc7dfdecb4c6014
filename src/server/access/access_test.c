// SPDX-License-Identifier: MIT
// Tests of access: which requests are granted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "server/access/access.h"

static const struct access_token token = {"0123456789abcdef0123456789abcdef"};

#define TOKEN "0123456789abcdef0123456789abcdef"

static void tokens_are_random_and_hexadecimal(void **state)
{
    (void)state;
    struct access_token first;
    struct access_token second;
    assert_int_equal(access_new_token(&first, NULL), ERR_OK);
    assert_int_equal(access_new_token(&second, NULL), ERR_OK);
    assert_int_equal(strlen(first.text), ACCESS_TOKEN_LEN);
    assert_int_equal(strspn(first.text, "0123456789abcdef"), ACCESS_TOKEN_LEN);
    assert_string_not_equal(first.text, second.text);
}

static void only_the_whole_token_is_the_token(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_token;
    } cases[] = {{TOKEN, true},
                 {"", false},
                 {"0", false},
                 {"0123456789abcdef0123456789abcde", false},
                 {TOKEN "0", false},
                 {"0123456789ABCDEF0123456789abcdef", false},
                 {"1123456789abcdef0123456789abcdef", false},
                 {"0123456789abcdef0123456789abcdee", false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (access_is_token(&token, cases[i].text, strlen(cases[i].text)) != cases[i].is_token) {
            fail_msg("\"%s\"", cases[i].text);
        }
    }
    static const struct access_token none = {0};
    assert_false(access_is_token(&none, "", 0));
}

static void only_names_of_this_machine_are_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool is_local;
    } cases[] = {
        {"127.0.0.1", true},
        {"127.0.0.1:8080", true},
        {"localhost:1", true},
        {"LOCALHOST:65535", true},
        {"[::1]", true},
        {"[::1]:9", true},
        {"", false},
        {"127.0.0.1:", false},
        {"127.0.0.1:x", false},
        {"127.0.0.1:123456", false},
        {"127.0.0.1.evil.com", false},
        {"evil.com", false},
        {"localhost.evil.com:80", false},
        {"evil.com:127.0.0.1", false},
        {"127.0.0.2", false},
        {"::1", false},
        {"127.0.0.1@evil.com", false},
        {" 127.0.0.1", false},
        {"127.0.0.1:80:80", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (access_host_is_local(cases[i].host) != cases[i].is_local) {
            fail_msg("\"%s\"", cases[i].host);
        }
    }
}

static void every_request_must_show_where_it_comes_from(void **state)
{
    (void)state;
    static const char host[] = "127.0.0.1:8080";
    static const char origin[] = "http://127.0.0.1:8080";
    static const struct {
        struct access_headers headers;
        enum access_verdict verdict;
    } cases[] = {
        {{.host = host}, ACCESS_NO_TOKEN},
        {{.host = host, .token = TOKEN}, ACCESS_GRANTED},
        {{.host = host, .token = "no"}, ACCESS_NO_TOKEN},
        {{.host = host, .authorization = "Bearer " TOKEN}, ACCESS_GRANTED},
        {{.host = host, .authorization = "bearer " TOKEN}, ACCESS_GRANTED},
        {{.host = host, .authorization = TOKEN}, ACCESS_NO_TOKEN},
        {{.host = host, .authorization = "Basic " TOKEN}, ACCESS_NO_TOKEN},
        // The host is checked first: a rebound name must not learn that a token is missing.
        {{.host = NULL, .token = TOKEN}, ACCESS_WRONG_HOST},
        {{.host = "evil.com", .token = TOKEN}, ACCESS_WRONG_HOST},
        {{.host = host, .origin = origin, .token = TOKEN}, ACCESS_GRANTED},
        {{.host = host, .origin = "null", .token = TOKEN}, ACCESS_WRONG_ORIGIN},
        {{.host = host, .origin = "http://evil.com", .token = TOKEN}, ACCESS_WRONG_ORIGIN},
        {{.host = host, .origin = "https://127.0.0.1:8080", .token = TOKEN}, ACCESS_WRONG_ORIGIN},
        {{.host = host, .origin = "http://127.0.0.1:8081", .token = TOKEN}, ACCESS_WRONG_ORIGIN},
        {{.host = host, .origin = "http://localhost:8080", .token = TOKEN}, ACCESS_WRONG_ORIGIN},
        {{.host = host, .fetch_site = "cross-site", .token = TOKEN}, ACCESS_WRONG_ORIGIN},
        {{.host = host, .fetch_site = "same-origin", .token = TOKEN}, ACCESS_GRANTED},
        // Any page may link to the viewer.
        {{.host = host, .fetch_site = "cross-site", .token = TOKEN, .is_page = true},
         ACCESS_GRANTED},
        {{.host = host, .authorization = "Bearer " TOKEN}, ACCESS_GRANTED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum access_verdict verdict = access_check(&token, &cases[i].headers);
        if (verdict != cases[i].verdict) {
            fail_msg("case %zu: %d, not %d", i, verdict, cases[i].verdict);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_random_and_hexadecimal),
        cmocka_unit_test(only_the_whole_token_is_the_token),
        cmocka_unit_test(only_names_of_this_machine_are_hosts),
        cmocka_unit_test(every_request_must_show_where_it_comes_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
