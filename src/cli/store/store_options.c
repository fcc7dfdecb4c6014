// SPDX-License-Identifier: MIT
#include "cli/store/store_options.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/options/option_values.h"
#include "host/text/number.h"
#include "host/text/strbuf.h"

// Take a duration up to one of `ends`, in seconds.
static bool take_seconds(const char **at, const char *ends, int64_t *out)
{
    CLEANUP(strbuf_release) struct strbuf word = {0};
    uint64_t ms = 0;
    const size_t len = strcspn(*at, ends);
    strbuf_append(&word, *at, len);
    if (strbuf_result(&word) != ERR_OK || len == 0 || !duration_parse(strbuf_text(&word), &ms) ||
        ms < MS_PER_S) {
        return false;
    }
    *at += len;
    *out = (int64_t)(ms / MS_PER_S);
    return true;
}

enum err store_policy_parse(const char *text, struct retention_policy *out, struct err_info *info)
{
    struct retention_policy policy = {0};
    const char *at = text;
    bool is_good = true;
    do {
        struct retention_step step = {0};
        is_good = policy.count < RETENTION_STEPS_MAX && take_seconds(&at, ",/", &step.age_s);
        if (is_good && *at == '/') {
            at++;
            is_good = take_seconds(&at, ",", &step.period_s);
        }
        is_good =
            is_good && (policy.count == 0 || step.age_s > policy.steps[policy.count - 1].age_s);
        if (is_good) {
            policy.steps[policy.count++] = step;
        }
    } while (is_good && *at++ == ',');
    if (!is_good) {
        return err_set(info, ERR_INVALID,
                       "--policy: '%.100s' is not a list of rising ages such as 7d,30d/1d,365d/7d",
                       text);
    }
    *out = policy;
    return ERR_OK;
}

enum err store_time_parse(const char *option, const char *text, int64_t *out, struct err_info *info)
{
    uint64_t number;
    struct tm day = {0};
    const char *rest = strptime(text, "%Y-%m-%d", &day);
    if (rest != NULL && rest[0] == '\0') {
        *out = timegm(&day);
    } else if (text[0] == '@' && number_parse(text + 1, INT64_MAX, &number)) {
        *out = (int64_t)number;
    } else if (duration_parse(text, &number)) {
        *out = time(NULL) - (int64_t)(number / MS_PER_S);
    } else {
        return err_set(info, ERR_INVALID,
                       "--%s: '%.100s' is not a time such as 2026-01-31, @1790000000 or 7d", option,
                       text);
    }
    return ERR_OK;
}
