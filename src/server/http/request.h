// SPDX-License-Identifier: MIT
// request: parses decoded request parameters into values and checks their bounds.
//
// One table has all parameters of the API, with kinds and bounds; each route lists the parameters
// that it takes. An unknown, repeated, malformed or out-of-bounds parameter is an error that names
// it. Invariant: texts are valid UTF-8 without zeros, of at most REQUEST_VALUE_MAX bytes.
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
    REQUEST_ROWS_MAX = 1000000, // in any table of an answer
};

enum param {
    PARAM_TOKEN,
    PARAM_FUNCTION,
    PARAM_FUNCTION_REGEX,
    PARAM_FILE,
    PARAM_FILE_REGEX,
    PARAM_MODULE,
    PARAM_MODULE_REGEX,
    PARAM_FOCUS,
    PARAM_IGNORE,
    PARAM_SHOW_FROM,
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
    PARAM_HIDE_WRAPPERS,
    PARAM_UNFOLD,
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
    PARAM_SERVICE,
    PARAM_VERSION,
    PARAM_HOST,
    PARAM_OLD,
    PARAM_NEW,
    PARAM_RECORDING_ID,
    PARAM_COUNT,
};

#define PARAM_BIT(param) ((uint64_t)1 << (param))

// The choices of PARAM_BY: which frames become one node, or which blocks become one group.
enum request_by {
    REQUEST_BY_LOCATION,
    REQUEST_BY_FUNCTION,
    REQUEST_BY_CALL_SITE,
    REQUEST_BY_STACK,
};

// A parameter as sent, percent-decoded. Borrowed.
struct request_arg {
    const char *name; // not zero-terminated
    size_t name_len;
    const char *value; // zero-terminated; may contain zero bytes; NULL without '='
    size_t value_len;
};

struct request_args {
    size_t count; // includes arguments beyond the array
    struct request_arg items[REQUEST_PARAMS_MAX];
};

struct request_value {
    const char *text; // borrowed from the arguments; NULL: not given, or empty
    uint64_t number;  // numbers, flags; index of a choice; bit for each choice of a list
    double fraction;
};

struct request {
    struct request_value values[PARAM_COUNT];
};

// Whether each '%' of the target starts an escape.
bool target_is_encoded(const char *target);

// Whether the target's path is exactly `path`. Paths are not decoded, since ours need no escapes.
bool target_has_path(const char *target, const char *path);

void request_args_add(struct request_args *args, const struct request_arg *arg);

// Add the parameters of a query without escapes, such as our own. It modifies the query.
void request_args_split(struct request_args *args, char *query);

// Parse and check the arguments, which must outlive the request. `allowed` has a PARAM_BIT for each
// parameter of the route. On ERR_INVALID or ERR_LIMIT, `info` has a sentence, and *parameter is the
// static name of the wrong parameter or NULL.
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

// The name of a parameter, and of a choice.
const char *request_param_name(enum param param);
const char *request_choice_name(enum param param, uint64_t choice);
