// SPDX-License-Identifier: MIT
// fuzz_request: libFuzzer over what the server reads from strangers: parameters, regular
// expressions, and the headers that are taken apart by hand. All that comes out must be within its
// bounds.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profile/select/name_regex.h"
#include "server/access/access.h"
#include "server/http/encoding.h"
#include "server/http/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_regex(const char *text)
{
    static const char name[] = "std::vector<int, std::allocator<int> >::push_back(int const&)";
    struct name_regex regex = {0};
    if (name_regex_compile(&regex, text, "function", NULL) == ERR_OK) {
        bool matches = name_regex_matches(&regex, name);
        require(name_regex_matches(&regex, name) == matches);
        require(!matches || name_regex_result(&regex, NULL) == ERR_OK);
        name_regex_release(&regex);
    }
}

static void check_request(const struct request_args *args, uint64_t allowed)
{
    struct request request;
    const char *parameter = NULL;
    struct err_info info = {0};
    if (request_parse(args, allowed, &request, &parameter, &info) != ERR_OK) {
        require(info.text[0] != '\0');
        return;
    }
    for (int param = 0; param < PARAM_COUNT; param++) {
        const struct request_value *value = &request.values[param];
        require(value->text == NULL || (allowed & PARAM_BIT(param)) != 0);
        require(value->text == NULL || strlen(value->text) <= REQUEST_VALUE_MAX);
    }
    require(request_number(&request, PARAM_LIMIT, 0) <= REQUEST_ROWS_MAX);
    require(request.values[PARAM_MIN_SHARE].fraction >= 0);
    require(request.values[PARAM_MIN_SHARE].fraction <= 1);
    const char *regex = request_text(&request, PARAM_FUNCTION_REGEX);
    if (regex != NULL) {
        check_regex(regex);
    }
}

static void check_headers(const char *text)
{
    static const struct access_token token = {"0123456789abcdef0123456789abcdef"};
    const struct access_headers as_bearer = {.host = "localhost", .authorization = text};
    const struct access_headers as_origin = {
        .host = "localhost", .origin = text, .token = token.text};
    const struct access_policy policy = {0};
    struct etag tag = etag_of(1);
    bool has_token = strstr(text, token.text) != NULL;
    // Base64 of user and token, at each of its three alignments, ends in one of these.
    bool has_basic = strstr(text, "EyMzQ1Njc4OWFiY2RlZ") != NULL ||
                     strstr(text, "xMjM0NTY3ODlhYmNkZW") != NULL ||
                     strstr(text, "MTIzNDU2Nzg5YWJjZGVm") != NULL;
    require(access_check(&token, policy, &as_bearer) == ACCESS_NO_TOKEN || has_token || has_basic);
    require(access_check(&token, policy, &as_origin) == ACCESS_WRONG_ORIGIN ||
            strcasecmp(text, "http://localhost") == 0);
    require(!access_host_is_local(text) || strlen(text) <= sizeof("127.0.0.1:65535"));
    require(!accepts_gzip(text) || strpbrk(text, "gG*") != NULL);
    (void)etag_is_in(&tag, text); // only that it ends
}

// As a query, and as the value of each parameter, zero bytes included.
static void check_requests(const char *text, size_t size)
{
    const uint64_t all = ~(uint64_t)0 >> (64 - PARAM_COUNT);
    char *query = strdup(text);
    require(query != NULL);
    struct request_args args = {0};
    request_args_split(&args, query);
    check_request(&args, all);
    check_request(&args, PARAM_BIT(PARAM_FUNCTION) | PARAM_BIT(PARAM_LIMIT));
    free(query);
    for (int param = 0; param < PARAM_COUNT; param++) {
        const char *name = request_param_name((enum param)param);
        args = (struct request_args){0};
        request_args_add(
            &args, &(struct request_arg){
                       .name = name, .name_len = strlen(name), .value = text, .value_len = size});
        check_request(&args, all);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    check_requests(text, size);
    check_regex(text);
    check_headers(text);
    free(text);
    return 0;
}
