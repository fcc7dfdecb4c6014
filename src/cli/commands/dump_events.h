// SPDX-License-Identifier: MIT
// dump_events: `cairn dump --events` prints the event log of a recording, for people or as JSON.
#pragma once

#include <stdbool.h>

#include "base/err.h"

// Print the event log to stdout.
enum err dump_events(const char *path, bool use_json, struct err_info *info) MUST_USE;
