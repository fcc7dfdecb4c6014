// SPDX-License-Identifier: MIT
#include "server/http/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/hex.h"
#include "host/text/number.h"
#include "host/text/utf8.h"
#include "profile/model/cost.h"
#include "profile/select/time_range.h"

enum value_kind {
    VALUE_TEXT,
    VALUE_REGEX,
    VALUE_NUMBER,   // from least to most
    VALUE_FLAG,     // 0 or 1
    VALUE_FRACTION, // from 0 to 1
    VALUE_CHOICE,
    VALUE_LIST,  // choices, separated by commas
    VALUE_COST,  // a key of the table of costs
    VALUE_COSTS, // keys, separated by commas, or "all"
};

struct param_spec {
    const char *name;
    enum value_kind kind;
    uint64_t least;
    uint64_t most;
    const char *const *choices; // the last entry is NULL
};

// The order is that of the enums that the choices stand for.
static const char *const recordings[] = {"new", "old", NULL};
static const char *const scores[] = {"larger", "change", "new", "old", NULL};
static const char *const directions[] = {"top_down", "bottom_up", NULL};
static const char *const keys[] = {"location", "function", "call_site", "stack", NULL};
static const char *const series_values[] = {"live_bytes", "allocations", "allocated_bytes",
                                            "temporary", NULL};
static const char *const ranks[] = {"blocks", "bytes", NULL};
static const char *const growth_classes[] = {"unknown", "growing",  "stopped", "start_up",
                                             "bounded", "sawtooth", "bursts",  "late",
                                             "once",    NULL};

#define TIME_MAX       ((uint64_t)1 << 53)
#define SIZE_MAX_BYTES ((uint64_t)1 << 53)

#define SPEC(param, of_name, of_kind, ...) \
    [PARAM_##param] = {.name = of_name, .kind = VALUE_##of_kind, __VA_ARGS__},
static const struct param_spec specs[PARAM_COUNT] = {REQUEST_PARAMS(SPEC)};

bool target_has_path(const char *target, const char *path)
{
    size_t len = strcspn(target, "?");
    return strlen(path) == len && memcmp(target, path, len) == 0;
}

// libmicrohttpd also decodes malformed escapes, and differently in each version.
bool target_is_encoded(const char *target)
{
    for (const char *at = strchr(target, '%'); at != NULL; at = strchr(at + 1, '%')) {
        if (hex_digit(at[1]) < 0 || hex_digit(at[2]) < 0) {
            return false;
        }
    }
    return true;
}

const char *request_param_name(enum param param)
{
    return specs[param].name;
}

const char *request_choice_name(enum param param, uint64_t choice)
{
    return specs[param].choices[choice];
}

static MUST_USE enum err
read_number(const struct param_spec *spec, struct request_value *value, struct err_info *info)
{
    const char *at = value->text;
    uint64_t number = 0;
    if (!number_take(&at, 10, &number) || *at != '\0') {
        return err_set(info, ERR_INVALID, "%s: '%.100s' is not a number", spec->name, value->text);
    }
    uint64_t most = spec->kind == VALUE_FLAG ? 1 : spec->most;
    if (number < spec->least || number > most) {
        return err_set(info, ERR_INVALID, "%s: %.100s is not between %llu and %llu", spec->name,
                       value->text, (unsigned long long)spec->least, (unsigned long long)most);
    }
    value->number = number;
    return ERR_OK;
}

// Parse "0", "1", "0.001": digits and at most one point, without locale or exponent.
static MUST_USE enum err
read_fraction(const struct param_spec *spec, struct request_value *value, struct err_info *info)
{
    double unit = 1;
    bool has_point = false;
    double fraction = 0;
    for (const char *at = value->text; *at != '\0'; at++) {
        if (*at == '.' && !has_point) {
            has_point = true;
        } else if (*at >= '0' && *at <= '9') {
            unit = has_point ? unit / 10 : unit;
            fraction = has_point ? fraction + unit * (*at - '0') : fraction * 10 + (*at - '0');
        } else {
            fraction = 2;
            break;
        }
    }
    if (fraction > 1) {
        return err_set(info, ERR_INVALID, "%s: '%.100s' is not a fraction from 0 to 1", spec->name,
                       value->text);
    }
    value->fraction = fraction;
    return ERR_OK;
}

// The index of word[0..len) among the choices, or -1.
static int find_choice(const char *const *choices, const char *word, size_t len)
{
    for (int i = 0; choices[i] != NULL; i++) {
        if (strlen(choices[i]) == len && memcmp(choices[i], word, len) == 0) {
            return i;
        }
    }
    return -1;
}

static int find_cost(const char *word, size_t len)
{
    for (int cost = 0; cost < COST_COUNT; cost++) {
        const char *key = cost_get_info((enum cost)cost)->key;
        if (strlen(key) == len && memcmp(key, word, len) == 0) {
            return cost;
        }
    }
    return -1;
}

static int find_word(const struct param_spec *spec, const char *word, size_t len)
{
    return spec->choices != NULL ? find_choice(spec->choices, word, len) : find_cost(word, len);
}

static MUST_USE enum err
unknown_word(const struct param_spec *spec, const char *word, size_t len, struct err_info *info)
{
    return err_set(info, ERR_INVALID, "%s: unknown value '%.*s'", spec->name,
                   (int)(len < 100 ? len : 100), word);
}

static MUST_USE enum err
read_choice(const struct param_spec *spec, struct request_value *value, struct err_info *info)
{
    size_t len = strlen(value->text);
    int choice = find_word(spec, value->text, len);
    if (choice < 0) {
        return unknown_word(spec, value->text, len, info);
    }
    value->number = (uint64_t)choice;
    return ERR_OK;
}

static MUST_USE enum err
read_list(const struct param_spec *spec, struct request_value *value, struct err_info *info)
{
    if (spec->kind == VALUE_COSTS && strcmp(value->text, "all") == 0) {
        value->number = ((uint64_t)1 << COST_COUNT) - 1;
        return ERR_OK;
    }
    for (const char *at = value->text;; at++) {
        size_t len = strcspn(at, ",");
        int choice = find_word(spec, at, len);
        if (choice < 0) {
            return unknown_word(spec, at, len, info);
        }
        value->number |= (uint64_t)1 << choice;
        at += len;
        if (*at == '\0') {
            return ERR_OK;
        }
    }
}

static MUST_USE enum err
read_value(const struct param_spec *spec, struct request_value *value, struct err_info *info)
{
    switch (spec->kind) {
    case VALUE_TEXT:
        return ERR_OK;
    case VALUE_REGEX:
        return strlen(value->text) <= REQUEST_REGEX_MAX
                   ? ERR_OK
                   : err_set(info, ERR_LIMIT, "%s: a regular expression may have %d bytes at most",
                             spec->name, REQUEST_REGEX_MAX);
    case VALUE_NUMBER:
    case VALUE_FLAG:
        return read_number(spec, value, info);
    case VALUE_FRACTION:
        return read_fraction(spec, value, info);
    case VALUE_CHOICE:
    case VALUE_COST:
        return read_choice(spec, value, info);
    case VALUE_LIST:
    case VALUE_COSTS:
        return read_list(spec, value, info);
    }
    return ERR_INVALID;
}

static enum param find_param(const char *name, size_t len, uint64_t allowed)
{
    for (int param = 0; param < PARAM_COUNT; param++) {
        if ((allowed & PARAM_BIT(param)) != 0 && strlen(specs[param].name) == len &&
            memcmp(specs[param].name, name, len) == 0) {
            return (enum param)param;
        }
    }
    return PARAM_COUNT;
}

// Report a parameter that the route does not take: name[0..len).
static MUST_USE enum err
refuse_param(const char *name, size_t len, const char **parameter, struct err_info *info)
{
    enum param param = find_param(name, len, UINT64_MAX);
    *parameter = param != PARAM_COUNT ? specs[param].name : NULL;
    return err_set(info, ERR_INVALID, "unknown parameter '%.*s'", (int)(len < 100 ? len : 100),
                   name);
}

// Check one parameter and store it, unless it is empty, which means that it was not given.
static MUST_USE enum err read_param(const struct param_spec *spec,
                                    const struct request_arg *arg,
                                    struct request_value *value,
                                    struct err_info *info)
{
    if (arg->value_len > REQUEST_VALUE_MAX) {
        return err_set(info, ERR_LIMIT, "%s: the value is too long", spec->name);
    }
    if (arg->value_len == 0) {
        return ERR_OK;
    }
    if (strlen(arg->value) != arg->value_len) {
        return err_set(info, ERR_INVALID, "%s: the value has a zero byte", spec->name);
    }
    if (!utf8_is_valid(arg->value)) {
        return err_set(info, ERR_INVALID, "%s: the value is not UTF-8", spec->name);
    }
    value->text = arg->value;
    return read_value(spec, value, info);
}

enum err request_parse(const struct request_args *args,
                       uint64_t allowed,
                       struct request *out,
                       const char **parameter,
                       struct err_info *info)
{
    uint64_t seen = 0;
    *out = (struct request){0};
    *parameter = NULL;
    if (args->count > REQUEST_PARAMS_MAX) {
        return err_set(info, ERR_LIMIT, "more than %d parameters", REQUEST_PARAMS_MAX);
    }
    for (size_t i = 0; i < args->count; i++) {
        const struct request_arg *arg = &args->items[i];
        enum param param = find_param(arg->name, arg->name_len, allowed);
        if (param == PARAM_COUNT) {
            return refuse_param(arg->name, arg->name_len, parameter, info);
        }
        *parameter = specs[param].name;
        if ((seen & PARAM_BIT(param)) != 0) {
            return err_set(info, ERR_INVALID, "%s: given twice", specs[param].name);
        }
        seen |= PARAM_BIT(param);
        TRY(read_param(&specs[param], arg, &out->values[param], info));
    }
    *parameter = NULL;
    return ERR_OK;
}

void request_args_add(struct request_args *args, const struct request_arg *arg)
{
    if (args->count < REQUEST_PARAMS_MAX) {
        args->items[args->count] = *arg;
    }
    args->count++;
}

void request_args_split(struct request_args *args, char *query)
{
    for (char *pair = strsep(&query, "&"); pair != NULL; pair = strsep(&query, "&")) {
        char *value = pair;
        const char *name = strsep(&value, "=");
        if (pair[0] != '\0' || value != NULL) {
            request_args_add(args,
                             &(struct request_arg){.name = name,
                                                   .name_len = strlen(name),
                                                   .value = value,
                                                   .value_len = value != NULL ? strlen(value) : 0});
        }
    }
}

enum err problem_set(struct problem *problem,
                     int status,
                     enum param parameter,
                     enum err code,
                     const char *format,
                     ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(problem->info.text, sizeof(problem->info.text), format, arguments); // truncates
    va_end(arguments);
    problem->status = status;
    problem->parameter = parameter != PARAM_COUNT ? request_param_name(parameter) : NULL;
    problem->info.code = code;
    return code;
}
