// SPDX-License-Identifier: MIT
// request: from the parameters of a request, already decoded, to values within their bounds.
//
// Every parameter of the API is a line in one table, with its kind and its bounds; a route says
// which it takes. What is unknown, doubled, malformed or out of bounds is an error that names the
// parameter. Invariant: texts are valid UTF-8 without zeros, at most REQUEST_VALUE_MAX bytes.
// Context: H; pure. Trust: targets and parameters are hostile.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    REQUEST_TARGET_MAX = 8192,
    REQUEST_VALUE_MAX = 2048,
    REQUEST_REGEX_MAX = 256,
    REQUEST_PARAMS_MAX = 32,
    REQUEST_ROWS_MAX = 1000000, // of any table in an answer
};

enum param {
    PARAM_TOKEN,
    PARAM_FUNCTION,
    PARAM_FUNCTION_REGEX,
    PARAM_FILE,
    PARAM_FILE_REGEX,
    PARAM_MODULE,
    PARAM_MODULE_REGEX,
    PARAM_PROCESS,
    PARAM_THREAD,
    PARAM_FROM_MS,
    PARAM_TO_MS,
    PARAM_CLASSES,
    PARAM_SIZE_MIN,
    PARAM_SIZE_MAX,
    PARAM_LIFETIME_MIN,
    PARAM_LIFETIME_MAX,
    PARAM_RECORDING,
    PARAM_DIFF,
    PARAM_COSTS,
    PARAM_SORT,
    PARAM_SORT_BY,
    PARAM_LIMIT,
    PARAM_OFFSET,
    PARAM_STACKS,
    PARAM_DIRECTION,
    PARAM_BY,
    PARAM_COLLAPSE,
    PARAM_ROOT,
    PARAM_NODE,
    PARAM_DEPTH,
    PARAM_MIN_SHARE,
    PARAM_ANY_COST,
    PARAM_SEARCH,
    PARAM_SEARCH_REGEX,
    PARAM_FUNCTION_ID,
    PARAM_BY_SELF,
    PARAM_ID,
    PARAM_NAME,
    PARAM_IN_MODULE,
    PARAM_FILE_PATH,
    PARAM_VALUE,
    PARAM_TOP,
    PARAM_RANK,
    PARAM_GROWTH,
    PARAM_MOMENT_MS,
    PARAM_COUNT,
};

#define PARAM_BIT(param) ((uint64_t)1 << (param))

// What PARAM_BY can name: frames that become one node, and blocks that become one group.
enum request_by {
    REQUEST_BY_LOCATION,
    REQUEST_BY_FUNCTION,
    REQUEST_BY_CALL_SITE,
    REQUEST_BY_STACK,
};

// A parameter as it was sent, without the percent-encoding. Borrowed.
struct request_arg {
    const char *name; // not terminated
    size_t name_len;
    const char *value; // terminated; may hold zero bytes; NULL: there is no '='
    size_t value_len;
};

struct request_args {
    size_t count; // those beyond the array are counted only
    struct request_arg items[REQUEST_PARAMS_MAX];
};

struct request_value {
    const char *text; // borrowed from the arguments; NULL: not given, or empty
    uint64_t number; // of numbers and flags; of choices their index; of lists a bit for each choice
    double fraction;
};

struct request {
    struct request_value values[PARAM_COUNT];
};

// Whether each '%' of the target begins an escape.
bool target_is_encoded(const char *target);

// Whether the target's path is exactly `path`. Paths are not decoded: none of ours needs it.
bool target_has_path(const char *target, const char *path);

void request_args_add(struct request_args *args, const struct request_arg *arg);

// Adds the parameters of a query that needs no decoding, as ours do not. Cuts the query in place.
void request_args_split(struct request_args *args, char *query);

// Checks the arguments, which must outlive the request. `allowed` has a PARAM_BIT for each
// parameter that the route takes. ERR_INVALID or ERR_LIMIT with a sentence, and *parameter is then
// the name of the one to blame, or NULL; it is static.
enum err request_parse(const struct request_args *args,
                       uint64_t allowed,
                       struct request *out,
                       const char **parameter,
                       struct err_info *info) MUST_USE;

static inline bool request_has(const struct request *request, enum param param)
{
    return request->values[param].text != NULL;
}

// The text, or NULL if it was not given.
static inline const char *request_text(const struct request *request, enum param param)
{
    return request->values[param].text;
}

static inline uint64_t
request_number(const struct request *request, enum param param, uint64_t otherwise)
{
    return request_has(request, param) ? request->values[param].number : otherwise;
}

// The name of a parameter, and of the choice that was made.
const char *request_param_name(enum param param);
const char *request_choice_name(enum param param, uint64_t choice);
