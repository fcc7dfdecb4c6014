// SPDX-License-Identifier: MIT
// dump_events: `cairn dump --events` prints the event log of a recording, for people or as JSON.
#pragma once

#include <stdbool.h>

// Print the event log to stdout and return the exit status.
int dump_events(const char *path, bool use_json);
