// SPDX-License-Identifier: MIT
// diff_format: figures of a comparison as text, in report, verdict and budgets.
//
// Context: H; pure.
#pragma once

#include "host/text/format.h"
#include "profile/compare/diff.h"

// Format a cost that may have been divided: "1.25 MiB", "0.35", "+12.5 B" with a sign.
struct human diff_format(enum cost cost, double value);
struct human diff_format_change(enum cost cost, double change);

// Format " ±1.20 MiB", or "" if the error is 0.
struct human diff_format_error(enum cost cost, double error);

// Format "+11.9%", or "from 0" if the old value was 0.
struct human diff_format_ratio(struct diff_change change);
