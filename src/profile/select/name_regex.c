// SPDX-License-Identifier: MIT
// name_regex: see name_regex.h.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "profile/select/name_regex.h"

#include <pcre2.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/text/utf8.h"

enum {
    STEPS_MAX = 100000, // from one position of a name; usual expressions take less than 1000
    STEPS_MIN = 1000,
    STEPS_OF_NAME_MAX = 1000000000, // from all positions of a name below a mebibyte
    DEPTH_MAX = 100000,             // of nested backtracking
    HEAP_KIB_MAX = 20000,
    MESSAGE_BYTES = 200,
};

#define BUDGET_NS (3 * NS_PER_S)

void name_regex_release(struct name_regex *regex)
{
    pcre2_match_context_free(regex->limits);
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->code);
    *regex = (struct name_regex){0};
}

static enum err refuse_pattern(
    const char *text, const char *name, int problem, size_t offset, struct err_info *info)
{
    if (problem == PCRE2_ERROR_HEAP_FAILED) {
        return ERR_NO_MEMORY;
    }
    if (problem == PCRE2_ERROR_PATTERN_TOO_LARGE ||
        problem == PCRE2_ERROR_PARENTHESES_NEST_TOO_DEEP ||
        problem == PCRE2_ERROR_PATTERN_TOO_COMPLICATED) {
        return err_set(info, ERR_LIMIT, "%s: the regular expression is too large", name);
    }
    PCRE2_UCHAR message[MESSAGE_BYTES] = "";
    (void)pcre2_get_error_message(problem, message, sizeof(message)); // truncated if too long
    return err_set(info, ERR_INVALID, "%s: '%.200s' is not a regular expression: %s (at byte %zu)",
                   name, text, (const char *)message, offset);
}

enum err name_regex_compile(struct name_regex *out,
                            const char *text,
                            const char *name,
                            struct err_info *info)
{
    // An expression that is not UTF-8 can only come from the command line. It compares bytes.
    const uint32_t utf = utf8_is_valid(text) ? PCRE2_UTF | PCRE2_MATCH_INVALID_UTF : 0;
    int problem = 0;
    size_t offset = 0;
    CLEANUP(name_regex_release)
    struct name_regex regex = {.name = name, .budget_ns = BUDGET_NS};
    regex.code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                               PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | utf, &problem, &offset, NULL);
    if (regex.code == NULL) {
        return refuse_pattern(text, name, problem, offset, info);
    }
    regex.match = pcre2_match_data_create(1, NULL);
    regex.limits = pcre2_match_context_create(NULL);
    if (regex.match == NULL || regex.limits == NULL) {
        return ERR_NO_MEMORY;
    }
    (void)pcre2_set_depth_limit(regex.limits, DEPTH_MAX); // these functions always succeed
    (void)pcre2_set_heap_limit(regex.limits, HEAP_KIB_MAX);
    *out = TAKE(regex);
    return ERR_OK;
}

// Read the thread's processor time only after the coarse clock advanced: every few milliseconds.
static void check_budget(struct name_regex *regex)
{
    const uint64_t now_ns = clock_read_ns(CLOCK_MONOTONIC_COARSE);
    if (now_ns == regex->seen_ns) {
        return;
    }
    regex->seen_ns = now_ns;
    const uint64_t used_ns = clock_thread_cpu_ns();
    if (regex->began_ns == 0) {
        regex->began_ns = used_ns;
    }
    regex->is_exhausted = regex->is_exhausted || used_ns - regex->began_ns > regex->budget_ns;
}

bool name_regex_matches(struct name_regex *regex, const char *text)
{
    check_budget(regex);
    if (regex->is_exhausted) {
        return false;
    }
    const size_t len = strlen(text);
    const uint64_t steps = max_u64(min_u64(STEPS_OF_NAME_MAX / (len + 1), STEPS_MAX), STEPS_MIN);
    (void)pcre2_set_match_limit(regex->limits, (uint32_t)steps); // always succeeds
    const int found =
        pcre2_match(regex->code, (PCRE2_SPTR)text, len, 0, 0, regex->match, regex->limits);
    // Other errors are reached limits, or failed allocations of pcre2_match().
    regex->is_exhausted = found < 0 && found != PCRE2_ERROR_NOMATCH;
    return found >= 0;
}

enum err name_regex_result(const struct name_regex *regex, struct err_info *info)
{
    return regex->is_exhausted
               ? err_set(info, ERR_LIMIT, "%s: this regular expression takes too long", regex->name)
               : ERR_OK;
}
