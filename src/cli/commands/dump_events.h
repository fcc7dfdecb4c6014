// SPDX-License-Identifier: MIT
// dump_events: `cairn dump --events`: the log of events of a recording, for people or as JSON.
#pragma once

#include <stdbool.h>

// Prints them to stdout; returns the exit status.
int dump_events(const char *path, bool use_json);
