// SPDX-License-Identifier: MIT
// request: from a request's target to a path and parameters that can be trusted to make sense.
//
//   /api/v1/tree?direction=bottom_up&depth=3
//   \_path_____/ \_query___________________/
//
// Every parameter of the API is a line in one table, with its kind and its bounds; a route says
// which it takes. What is unknown, doubled, malformed or out of bounds is an error that names the
// parameter. Invariant: texts are valid UTF-8 without zeros, at most REQUEST_VALUE_MAX bytes.
// Context: H; pure. Trust: the target is hostile.
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
    PARAM_SITES_BY,
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

struct request_value {
    bool is_given;
    char *text;      // owned; of texts
    uint64_t number; // of numbers and flags; of choices their index; of lists a bit for each choice
    double fraction;
};

struct request {
    struct request_value values[PARAM_COUNT];
};

// Where a target's query begins: behind its '?', or at its end.
const char *target_query(const char *target);

// Whether the target's path is exactly `path`. Paths are not decoded: none of ours needs it.
bool target_has_path(const char *target, const char *path);

// Reads the query. `allowed` has a PARAM_BIT for each parameter that the route takes. Two
// parameters may have the same name; the route takes one of them. ERR_INVALID or ERR_LIMIT with a
// sentence, and *parameter is then the name of the one to blame, or NULL; it is static.
enum err request_parse(const char *query,
                       uint64_t allowed,
                       struct request *out,
                       const char **parameter,
                       struct err_info *info) MUST_USE;

void request_release(struct request *request); // accepts a zeroed one

static inline bool request_has(const struct request *request, enum param param)
{
    return request->values[param].is_given;
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
