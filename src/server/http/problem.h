// SPDX-License-Identifier: MIT
// problem: the error that a client receives instead of an answer.
// Context: H; belongs to the thread that answers.
#pragma once

#include "base/compiler.h"
#include "base/err.h"
#include "server/http/request.h"

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
