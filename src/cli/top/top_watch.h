// SPDX-License-Identifier: MIT
// top_watch: shows a recording until the user quits: on the whole terminal, or as plain text.
//
//   keys, signals, samples --poll--> model --> picture --> terminal
//   samples ------------------poll--> model --> lines on stdout
//
// SIGINT, SIGTERM and SIGHUP quit, as 'q' does. Context: H; the main thread, which prints.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/top/top_model.h"
#include "cli/top/top_run.h"
#include "symbols/names/name_sources.h"

struct top_watch_options {
    const struct top_run *run;
    const struct name_sources *sources;
    uint64_t interval_ms;
    enum top_column sort;
    const char *filter; // NULL: none
    uint32_t count;     // updates in plain text; 0: until the end
    uint32_t limit;     // rows in plain text; 0: all
};

// Show it on the terminal. Errors of the recording are shown there. *has_ended is whether the end
// of the program was seen.
enum err top_watch_screen(const struct top_watch_options *options,
                          bool *has_ended,
                          struct err_info *info) MUST_USE;

// Write it to stdout; the caller checks the stream.
enum err top_watch_plain(const struct top_watch_options *options,
                         bool *has_ended,
                         struct err_info *info) MUST_USE;
