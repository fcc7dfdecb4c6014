// SPDX-License-Identifier: MIT
// store_options: reads the values of options of `cairn store`: times, and what
// src/store/retention.h describes. Context: H. Errors: ERR_INVALID with a sentence.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "store/retention.h"

// Parse the value of --policy.
enum err store_policy_parse(const char *text, struct retention_policy *out, struct err_info *info)
    MUST_USE;

// Parse a time into seconds of Unix time.
enum err store_time_parse(const char *option, const char *text, int64_t *out, struct err_info *info)
    MUST_USE;
