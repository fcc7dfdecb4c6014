// SPDX-License-Identifier: MIT
// policy_option: reads the option --policy of `cairn store`: what src/store/retention.h describes.
// Context: H; pure.
#pragma once

#include "base/err.h"
#include "store/retention.h"

// ERR_INVALID with a sentence.
enum err policy_option_parse(const char *text, struct retention_policy *out, struct err_info *info)
    MUST_USE;
