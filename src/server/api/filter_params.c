// SPDX-License-Identifier: MIT
#include "server/api/filter_params.h"

#include <string.h>

#include "base/compiler.h"

enum {
    STATUS_CONFLICT = 409,
};

static void read_names(const struct request *request, struct filter *filter)
{
    const struct {
        enum param param;
        const char **field;
    } texts[] = {
        {PARAM_FUNCTION, &filter->function_text},
        {PARAM_FUNCTION_REGEX, &filter->function},
        {PARAM_FILE, &filter->file_text},
        {PARAM_FILE_REGEX, &filter->file},
        {PARAM_MODULE, &filter->module_text},
        {PARAM_MODULE_REGEX, &filter->module},
        {PARAM_FOCUS, &filter->focus},
        {PARAM_IGNORE, &filter->ignore},
        {PARAM_SHOW_FROM, &filter->show_from},
        {PARAM_THREAD, &filter->thread},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *text = request_text(request, texts[i].param);
        *texts[i].field = text != NULL ? text : *texts[i].field;
    }
    filter->pid = (uint32_t)request_number(request, PARAM_PROCESS, filter->pid);
}

// Read a range of sizes or lifetimes, both ends included and optional.
static MUST_USE enum err read_buckets(const struct request *request,
                                      enum param low,
                                      enum param high,
                                      bool *has_range,
                                      struct bucket_range *range,
                                      struct problem *problem)
{
    if (!request_has(request, low) && !request_has(request, high)) {
        return ERR_OK;
    }
    uint64_t least = request_number(request, low, 0);
    uint64_t most = request_number(request, high, UINT64_MAX);
    if (most < least) {
        return problem_set(problem, 0, high, ERR_INVALID, "%s: the range ends before it begins",
                           request_param_name(high));
    }
    *has_range = true;
    *range = bucket_range_covering(least, most);
    return ERR_OK;
}

enum err
filter_params_read(const struct request *request, struct filter *filter, struct problem *problem)
{
    read_names(request, filter);
    TRY(read_buckets(request, PARAM_SIZE_MIN, PARAM_SIZE_MAX, &filter->has_sizes, &filter->sizes,
                     problem));
    return read_buckets(request, PARAM_LIFETIME_MIN, PARAM_LIFETIME_MAX, &filter->has_lifetimes,
                        &filter->lifetimes, problem);
}

// The first parameter of a time range that was given.
static enum param range_param(const struct request *request)
{
    static const enum param params[] = {PARAM_FROM_MS, PARAM_TO_MS, PARAM_CLASSES};
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(params) && !request_has(request, params[i])) {
        i++;
    }
    return params[i];
}

enum err filter_params_read_time(const struct request *request,
                                 const struct recording *recording,
                                 struct filter *filter,
                                 struct problem *problem)
{
    filter->has_range = request_has(request, PARAM_FROM_MS) || request_has(request, PARAM_TO_MS) ||
                        request_has(request, PARAM_CLASSES);
    if (!filter->has_range) {
        return ERR_OK;
    }
    if (!time_range_is_known(recording)) {
        return problem_set(problem, STATUS_CONFLICT, range_param(request), ERR_INVALID,
                           "the recording has no time slices, so it cannot be asked for a "
                           "time range");
    }
    uint64_t from_ms = request_number(request, PARAM_FROM_MS, 0);
    uint64_t to_ms = request_number(request, PARAM_TO_MS, UINT64_MAX);
    if (to_ms <= from_ms) {
        return problem_set(problem, 0, PARAM_TO_MS, ERR_INVALID,
                           "to_ms: the range ends before it begins");
    }
    uint64_t classes = request_number(request, PARAM_CLASSES, BLOCKS_IN_IN | BLOCKS_IN_OUT);
    filter->range = time_range_covering(recording, from_ms, to_ms, (uint32_t)classes);
    return ERR_OK;
}

// Find the wrong parameter: a pattern's error message starts with its name.
static void blame_pattern(struct problem *problem)
{
    static const enum param patterns[] = {PARAM_FUNCTION_REGEX, PARAM_FILE_REGEX,
                                          PARAM_MODULE_REGEX,   PARAM_FOCUS,
                                          PARAM_IGNORE,         PARAM_SHOW_FROM};
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        const char *name = request_param_name(patterns[i]);
        size_t len = strcspn(problem->info.text, ":");
        if (strncmp(name, problem->info.text, len) == 0) {
            problem->parameter = name;
        }
    }
}

// Find the parameter of a range of unrecorded data.
static void blame_range(const struct request *request, struct problem *problem)
{
    static const enum param ranges[] = {PARAM_SIZE_MIN, PARAM_SIZE_MAX, PARAM_LIFETIME_MIN,
                                        PARAM_LIFETIME_MAX};
    problem->status = STATUS_CONFLICT;
    for (size_t i = ARRAY_LEN(ranges); i-- > 0;) {
        if (request_has(request, ranges[i])) {
            problem->parameter = request_param_name(ranges[i]);
        }
    }
}

enum err
filter_params_blame(const struct request *request, enum err reason, struct problem *problem)
{
    blame_pattern(problem);
    if (reason == ERR_UNSUPPORTED && problem->parameter == NULL) {
        blame_range(request, problem);
    }
    return reason;
}

void filter_params_append(const struct request *request, struct strbuf *out)
{
    for (int param = PARAM_FUNCTION; param <= PARAM_RECORDING; param++) {
        const char *text = request_text(request, (enum param)param);
        strbuf_append_char(out, '\0');
        strbuf_append_text(out, text != NULL ? text : "");
    }
}
