// SPDX-License-Identifier: MIT
// Tests of access: which requests are granted.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "server/access/access.h"

static const struct access_token token = {"0123456789abcdef0123456789abcdef"};

#define TOKEN       "0123456789abcdef0123456789abcdef"
#define BASIC(user) "Basic " user "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
#define BASIC_ALONE "OjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVm"

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

// Else the next start would refuse the half token.
static void a_full_disk_leaves_no_token_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/access_test.XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {.rlim_cur = 10, .rlim_max = before.rlim_max};
    struct access_token made = {0};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const enum err err = token_file_read_or_make("token", &made, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(err, ERR_IO);
    assert_int_equal(access("token", F_OK), -1);
    assert_int_equal(token_file_read_or_make("token", &made, NULL), ERR_OK);
    assert_int_equal(unlink("token") + rmdir(folder), 0);
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
        // RFC 7617: base64 of "cairn:" and the token, of ":" and the token, of less, of more.
        {{.host = host, .authorization = BASIC("Y2Fpcm46")}, ACCESS_GRANTED},
        {{.host = host, .authorization = "basic " BASIC_ALONE}, ACCESS_GRANTED},

        {{.host = host, .authorization = BASIC("Y2Fpcm46") "!"}, ACCESS_NO_TOKEN},
        {{.host = host, .authorization = BASIC("Y2Fpcm4A")}, ACCESS_NO_TOKEN}, // no colon
        {{.host = host, .authorization = "Basic "}, ACCESS_NO_TOKEN},
        {{.host = host, .authorization = "Basic Og=="}, ACCESS_NO_TOKEN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum access_verdict verdict =
            access_check(&token, (struct access_policy){0}, &cases[i].headers);
        if (verdict != cases[i].verdict) {
            fail_msg("case %zu: %d, not %d", i, verdict, cases[i].verdict);
        }
    }
}

static void a_policy_drops_the_token_or_the_name(void **state)
{
    (void)state;
    static const char host[] = "127.0.0.1:8080";
    static const struct access_policy any_name = {.has_any_name = true};
    static const struct access_policy open = {.is_open = true};
    static const struct access_policy header = {.needs_header = true};
    const struct {
        struct access_headers headers;
        enum access_verdict verdict;
        struct access_policy policy;
    } cases[] = {
        {{.host = "pod.example:9464"}, ACCESS_NO_TOKEN, any_name},
        {{.host = "pod.example:9464", .token = TOKEN}, ACCESS_GRANTED, any_name},
        {{.host = NULL, .token = TOKEN}, ACCESS_GRANTED, any_name},
        {{.host = NULL, .origin = "http://evil.com", .token = TOKEN},
         ACCESS_WRONG_ORIGIN,
         any_name},
        {{.host = host, .token = TOKEN}, ACCESS_NO_TOKEN, header},
        {{.host = host, .authorization = "Bearer " TOKEN}, ACCESS_GRANTED, header},
        {{.host = host}, ACCESS_GRANTED, open},
        // Without a token, the name and the origin still keep pages of other sites out.
        {{.host = "evil.com"}, ACCESS_WRONG_HOST, open},
        {{.host = host, .origin = "http://evil.com"}, ACCESS_WRONG_ORIGIN, open},
        {{.host = host, .fetch_site = "cross-site"}, ACCESS_WRONG_ORIGIN, open},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum access_verdict verdict = access_check(&token, cases[i].policy, &cases[i].headers);
        if (verdict != cases[i].verdict) {
            fail_msg("case %zu: %d, not %d", i, verdict, cases[i].verdict);
        }
    }
}

int main(void)
{
    (void)signal(SIGXFSZ, SIG_IGN); // a write beyond the limit fails
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_random_and_hexadecimal),
        cmocka_unit_test(a_full_disk_leaves_no_token_file),
        cmocka_unit_test(only_the_whole_token_is_the_token),
        cmocka_unit_test(only_names_of_this_machine_are_hosts),
        cmocka_unit_test(every_request_must_show_where_it_comes_from),
        cmocka_unit_test(a_policy_drops_the_token_or_the_name),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
