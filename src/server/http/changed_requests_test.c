// SPDX-License-Identifier: MIT
// Queries and headers, changed in hundreds of ways: what the server takes from them, and each
// refusal, are those of the last approval (changed_bytes.h). So are the parameters of each route.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/changed_bytes.h"
#include "host/text/strbuf.h"
#include "server/access/access.h"
#include "server/api/routes.h"
#include "server/http/encoding.h"
#include "server/http/request.h"

enum {
    CHANGED_TEXTS = 400, // of each text
    TEXT_BYTES_MAX = 500,
};

static void add_query(const char *text, struct outcome_sum *sum)
{
    const uint64_t all = ~(uint64_t)0 >> (64 - PARAM_COUNT);
    char query[TEXT_BYTES_MAX + 1];
    struct request_args args = {0};
    struct request request;
    const char *parameter = NULL;
    struct err_info info = {0};
    CLEANUP(strbuf_release) struct strbuf said = {0};
    (void)snprintf(query, sizeof(query), "%s", text);
    request_args_split(&args, query);
    const enum err err =
        request_parse(&args, all & ~PARAM_BIT(PARAM_ROOT), &request, &parameter, &info);
    if (err != ERR_OK) {
        strbuf_printf(&said, "%s: %s", parameter != NULL ? parameter : "-", info.text);
    }
    for (int i = 0; err == ERR_OK && i < PARAM_COUNT; i++) {
        const struct request_value *value = &request.values[i];
        if (value->text != NULL) {
            strbuf_printf(&said, "%s=%s %llu %.6f ", request_param_name((enum param)i), value->text,
                          (unsigned long long)value->number, value->fraction);
        }
    }
    outcome_add_text(sum, strbuf_text(&said));
}

static void add_header(const char *text, struct outcome_sum *sum)
{
    static const struct access_token token = {"0123456789abcdef0123456789abcdef"};
    const struct etag tag = etag_of(0xabcdef);
    const struct access_headers headers[] = {
        {.host = text, .token = token.text},
        {.host = "localhost", .authorization = text},
        {.host = "localhost", .origin = text, .token = token.text},
        {.host = "localhost", .fetch_site = text, .token = token.text},
        {.host = "localhost", .fetch_site = text, .token = token.text, .is_page = true},
        {.host = "localhost", .token = text},
    };
    char said[TEXT_BYTES_MAX + 100];
    unsigned verdicts = 0;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        for (unsigned policy = 0; policy < 4; policy++) {
            const struct access_policy rule = {.has_any_name = (policy & 1) != 0,
                                               .is_open = (policy & 2) != 0};
            verdicts = verdicts * 31 + (unsigned)access_check(&token, rule, &headers[i]);
        }
    }
    (void)snprintf(said, sizeof(said), "%s %u %d %d %d %d", text, verdicts,
                   access_host_is_local(text), accepts_gzip(text), etag_is_in(&tag, text),
                   target_is_encoded(text));
    outcome_add_text(sum, said);
}

static void changed_texts_are_understood_as_before(void **state)
{
    static const struct {
        const char *name;
        uint64_t approved;
        const char *text;
        void (*add)(const char *text, struct outcome_sum *sum);
    } texts[] = {
        {"filter", 0xa37fbe7ecbe28b92,
         "function=f&file_regex=^/src&classes=in_in,out_out&from_ms=100&to_ms=2000", add_query},
        {"names", 0x8626704e5a00379d,
         "module=libc&module_regex=a|b&focus=x&ignore=y&show_from=z&thread=work*", add_query},
        {"series", 0xe3debf3197b2dedc,
         "by=stack&value=temporary&top=50&rank=bytes&growth=growing&by_self=1", add_query},
        {"ids", 0xf75edfa7d928f45b,
         "id=5&name=main&in_module=/bin/app&node=7&function_id=9&offset=100&unfold=1,2", add_query},
        {"ranges", 0x7386e6763b71f044,
         "size_min_bytes=64&size_max_bytes=4096&lifetime_min_ms=0&lifetime_max_ms=90", add_query},
        {"tree", 0xc2c49dc1dd4597a9,
         "direction=bottom_up&collapse=1&depth=3&min_share=0.001&limit=20000&any_cost=1",
         add_query},
        {"order", 0xabd7114b513f4863,
         "sort=leaked_bytes&sort_by=change&costs=peak_bytes,allocations&search=x", add_query},
        {"rest", 0x6d744b24930808e8,
         "diff=1&recording=old&hide_wrappers=1&search_regex=a&stacks=3&moment_ms=70&limit=",
         add_query},
        {"host", 0x1ec5834f71603315, "localhost:8080", add_header},
        {"address", 0xc0806aa093a9680c, "127.0.0.1:65535", add_header},
        {"ipv6", 0xb889e23258927fda, "[::1]:80", add_header},
        {"origin", 0x884116c1cb883ad2, "http://localhost:7000", add_header},
        {"bearer", 0x08e3e6de06ed4b2e, "Bearer 0123456789abcdef0123456789abcdef", add_header},
        {"basic", 0x364ca6ce5d11dd58,
         "Basic YTowMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg==", add_header},
        {"token", 0x2de7d6f2ec72396e, "0123456789abcdef0123456789abcdef", add_header},
        {"site", 0x4977965f1d9bad18, "same-origin", add_header},
        {"none", 0x6c20ba7abad08fe1, "none", add_header},
        {"coding", 0x50e56bdccf701d5f, "br;q=1.0, gzip;q=0.8, *;q=0.1", add_header},
        {"refusal", 0x624eee517b73edde, "gzip;q=0, deflate", add_header},
        {"tags", 0x0e26ecfb8957af55, "\"x\", W/\"0000000000abcdef\", *", add_header},
        {"target", 0x5ba4e26447239fc8, "/api/v1/tree?function=%28%c3%a4%29", add_header},
    };
    (void)state;
    unsigned changed = 0;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct outcome_sum sum = {0};
        uint64_t random = i + 1;
        for (unsigned k = 0; k < CHANGED_TEXTS; k++) {
            char text[TEXT_BYTES_MAX + 1];
            change_text(texts[i].text, k % 4, TEXT_BYTES_MAX, &random, text);
            texts[i].add(text, &sum);
        }
        changed += !outcome_is_approved(&sum, texts[i].name, texts[i].approved);
    }
    assert_int_equal(changed, 0); // if that is intended, approve the numbers above
}

static void each_route_takes_the_parameters_of_before(void **state)
{
    static const char *const names[] = {
        "meta",      "health",    "summary",  "verdict",       "call_sites", "stacks",
        "tree",      "functions", "function", "call_graph",    "source",     "series",
        "sizes",     "lifetimes", "leaks",    "size_lifetime", "rss",        "adhoc",
        "processes", "threads",   "modules",  "files"};
    static const uint64_t approved = UINT64_C(0x46e00b386b4fa394);
    struct outcome_sum sum = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/api/v1/%s", names[i]);
        const struct route *route = route_find(path);
        assert_non_null(route);
        CLEANUP(strbuf_release) struct strbuf said = {0};
        strbuf_printf(&said, "%s%s%s", path, route->has_selection ? " selection" : "",
                      route->is_volatile ? " volatile" : "");
        for (int param = 0; param < PARAM_COUNT; param++) {
            if ((route->params & PARAM_BIT(param)) != 0) {
                strbuf_printf(&said, " %s", request_param_name((enum param)param));
            }
        }
        outcome_add_text(&sum, strbuf_text(&said));
    }
    assert_true(outcome_is_approved(
        &sum, "approved", approved)); // if the change is intended, approve the number above
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_texts_are_understood_as_before),
        cmocka_unit_test(each_route_takes_the_parameters_of_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
