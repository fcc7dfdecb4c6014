// SPDX-License-Identifier: MIT
// Queries and headers, changed in hundreds of ways: what the server takes from them, and each
// refusal, follow from the text alone (changed_bytes.h).
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

static void changed_texts_are_understood_alike_each_time(void **state)
{
    static const struct {
        const char *name;
        const char *text;
        void (*add)(const char *text, struct outcome_sum *sum);
    } texts[] = {
        {"filter", "function=f&file_regex=^/src&classes=in_in,out_out&from_ms=100&to_ms=2000",
         add_query},
        {"names", "module=libc&module_regex=a|b&focus=x&ignore=y&show_from=z&thread=work*",
         add_query},
        {"series", "by=stack&value=temporary&top=50&rank=bytes&growth=growing&by_self=1",
         add_query},
        {"ids", "id=5&name=main&in_module=/bin/app&node=7&function_id=9&offset=100&unfold=1,2",
         add_query},
        {"ranges", "size_min_bytes=64&size_max_bytes=4096&lifetime_min_ms=0&lifetime_max_ms=90",
         add_query},
        {"tree", "direction=bottom_up&collapse=1&depth=3&min_share=0.001&limit=20000&any_cost=1",
         add_query},
        {"order", "sort=live_bytes&sort_by=change&costs=peak_bytes,allocations&search=x",
         add_query},
        {"rest", "diff=1&recording=old&hide_wrappers=1&search_regex=a&stacks=3&moment_ms=70&limit=",
         add_query},
        {"host", "localhost:8080", add_header},
        {"address", "127.0.0.1:65535", add_header},
        {"ipv6", "[::1]:80", add_header},
        {"origin", "http://localhost:7000", add_header},
        {"bearer", "Bearer 0123456789abcdef0123456789abcdef", add_header},
        {"basic", "Basic YTowMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg==", add_header},
        {"token", "0123456789abcdef0123456789abcdef", add_header},
        {"site", "same-origin", add_header},
        {"none", "none", add_header},
        {"coding", "br;q=1.0, gzip;q=0.8, *;q=0.1", add_header},
        {"refusal", "gzip;q=0, deflate", add_header},
        {"tags", "\"x\", W/\"0000000000abcdef\", *", add_header},
        {"target", "/api/v1/tree?function=%28%c3%a4%29", add_header},
    };
    (void)state;
    unsigned changed = 0;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct outcome_sum sums[2] = {0};
        for (unsigned pass = 0; pass < 2; pass++) {
            uint64_t random = i + 1;
            for (unsigned k = 0; k < CHANGED_TEXTS; k++) {
                char text[TEXT_BYTES_MAX + 1];
                change_text(texts[i].text, k % 4, TEXT_BYTES_MAX, &random, text);
                texts[i].add(text, &sums[pass]);
            }
        }
        changed += !outcomes_agree(sums, texts[i].name);
    }
    assert_int_equal(changed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_texts_are_understood_alike_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
