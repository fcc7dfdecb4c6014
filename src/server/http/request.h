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

#include "base/compiler.h"
#include "base/err.h"

enum {
    REQUEST_TARGET_MAX = 8192,
    REQUEST_VALUE_MAX = 2048,
    REQUEST_REGEX_MAX = 256,
    REQUEST_PARAMS_MAX = 32,
    REQUEST_ROWS_MAX = 1000000, // in any table of an answer
};

// The parameters of the API: the enumerator after PARAM_, the name, the kind of value_kind, and
// other members of param_spec, both of request.c. The filters are those of FUNCTION to RECORDING.
#define REQUEST_PARAMS(X)                                         \
    X(TOKEN, "token", TEXT)                                       \
    X(FUNCTION, "function", TEXT)                                 \
    X(FUNCTION_REGEX, "function_regex", REGEX)                    \
    X(FILE, "file", TEXT)                                         \
    X(FILE_REGEX, "file_regex", REGEX)                            \
    X(MODULE, "module", TEXT)                                     \
    X(MODULE_REGEX, "module_regex", REGEX)                        \
    X(FOCUS, "focus", REGEX)                                      \
    X(IGNORE, "ignore", REGEX)                                    \
    X(SHOW_FROM, "show_from", REGEX)                              \
    X(PROCESS, "process", NUMBER, .least = 1, .most = UINT32_MAX) \
    X(THREAD, "thread", TEXT)                                     \
    X(FROM_MS, "from_ms", NUMBER, .most = TIME_MAX)               \
    X(TO_MS, "to_ms", NUMBER, .most = TIME_MAX)                   \
    X(OLD_FROM_MS, "old_from_ms", NUMBER, .most = TIME_MAX)       \
    X(OLD_TO_MS, "old_to_ms", NUMBER, .most = TIME_MAX)           \
    X(CLASSES, "classes", LIST, .choices = block_class_names)     \
    X(SIZE_MIN, "size_min_bytes", NUMBER, .most = SIZE_MAX_BYTES) \
    X(SIZE_MAX, "size_max_bytes", NUMBER, .most = SIZE_MAX_BYTES) \
    X(LIFETIME_MIN, "lifetime_min_ms", NUMBER, .most = TIME_MAX)  \
    X(LIFETIME_MAX, "lifetime_max_ms", NUMBER, .most = TIME_MAX)  \
    X(RECORDING, "recording", CHOICE, .choices = recordings)      \
    X(DIFF, "diff", FLAG)                                         \
    X(COSTS, "costs", COSTS)                                      \
    X(SORT, "sort", COST)                                         \
    X(SORT_BY, "sort_by", CHOICE, .choices = scores)              \
    X(LIMIT, "limit", NUMBER, .most = REQUEST_ROWS_MAX)           \
    X(OFFSET, "offset", NUMBER, .most = UINT32_MAX)               \
    X(STACKS, "stacks", NUMBER, .most = 1000)                     \
    X(DIRECTION, "direction", CHOICE, .choices = directions)      \
    X(BY, "by", CHOICE, .choices = keys)                          \
    X(COLLAPSE, "collapse", FLAG)                                 \
    X(HIDE_WRAPPERS, "hide_wrappers", FLAG)                       \
    X(UNFOLD, "unfold", TEXT)                                     \
    X(ROOT, "root", NUMBER, .most = UINT32_MAX)                   \
    X(NODE, "node", NUMBER, .most = UINT32_MAX)                   \
    X(DEPTH, "depth", NUMBER, .most = UINT32_MAX)                 \
    X(MIN_SHARE, "min_share", FRACTION)                           \
    X(ANY_COST, "any_cost", FLAG)                                 \
    X(SEARCH, "search", TEXT)                                     \
    X(SEARCH_REGEX, "search_regex", REGEX)                        \
    X(FUNCTION_ID, "function_id", NUMBER, .most = UINT32_MAX)     \
    X(BY_SELF, "by_self", FLAG)                                   \
    X(ID, "id", NUMBER, .most = UINT32_MAX)                       \
    X(NAME, "name", TEXT)                                         \
    X(IN_MODULE, "in_module", TEXT)                               \
    X(FILE_PATH, "file_path", TEXT)                               \
    X(VALUE, "value", CHOICE, .choices = series_values)           \
    X(TOP, "top", NUMBER, .most = 50)                             \
    X(RANK, "rank", CHOICE, .choices = ranks)                     \
    X(GROWTH, "growth", CHOICE, .choices = growth_classes)        \
    X(MOMENT_MS, "moment_ms", NUMBER, .most = TIME_MAX)           \
    X(SERVICE, "service", TEXT)                                   \
    X(VERSION, "version", TEXT)                                   \
    X(HOST, "host", TEXT)                                         \
    X(OLD, "old", TEXT)                                           \
    X(NEW, "new", TEXT)                                           \
    X(RECORDING_ID, "recording_id", TEXT)

#define PARAM_OF(param, ...) PARAM_##param,
enum param {
    REQUEST_PARAMS(PARAM_OF) PARAM_COUNT
};
#undef PARAM_OF

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

// The error that a client receives instead of an answer; it belongs to the thread that answers.
struct problem {
    int status;            // of HTTP; 0: derived from info.code
    const char *parameter; // static; NULL: no parameter is wrong
    const char *allow;     // static; the methods that are possible, for status 405; NULL otherwise
    struct err_info info;
};

// Describe a refusal with a sentence. Return `code`.
enum err problem_set(struct problem *problem,
                     int status,           // 0: derived from `code`
                     enum param parameter, // PARAM_COUNT: none is to blame
                     enum err code,
                     const char *format,
                     ...) PRINTF_LIKE(5, 6);
