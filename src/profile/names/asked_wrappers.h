// SPDX-License-Identifier: MIT
// asked_wrappers: functions that the user asks to treat as wrappers (wrappers.h).
//
// Context: H.
#pragma once

#include "base/err.h"
#include "profile/model/profile.h"
#include "symbols/names/name_sources.h"

// Flag every function of the profile that matches one of `sources->wrappers`. Do nothing if
// `sources` is NULL. Call it before any query. Errors: those of pattern_init and pattern_result,
// ERR_NO_MEMORY.
enum err asked_wrappers_apply(struct profile *profile,
                              const struct name_sources *sources,
                              struct err_info *info) MUST_USE;
