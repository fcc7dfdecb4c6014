// SPDX-License-Identifier: MIT
#include "server/http/problem.h"

#include <stdarg.h>
#include <stdio.h>

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
