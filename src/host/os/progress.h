// SPDX-License-Identifier: MIT
// progress: one line on the terminal that says what takes so long and how far it is.
//
// Shows nothing if the stream is no terminal, nothing during the first second, and at most ten
// changes a second; the line is overwritten in place, cut to the terminal's width, and wiped at the
// end. The clock is a parameter, so that tests need not wait. Output errors are ignored: progress
// is never worth a failure. Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *stream; // borrowed; NULL: silent
    uint64_t (*now_ns)(void *context);
    void *clock_context;
    uint64_t started_ns;
    uint64_t shown_ns; // when the line last changed
    bool is_visible;
    unsigned width_columns;
};

// On `stream` if it is a terminal (else, and if it is NULL, silent), with the monotonic clock.
void progress_init(struct progress *p, FILE *stream);

// On `stream` whatever it is, by the given clock.
void progress_init_with_clock(struct progress *p,
                              FILE *stream,
                              unsigned width_columns,
                              uint64_t (*now_ns)(void *context),
                              void *clock_context);

// `what` is a phrase such as "reading symbols"; control characters in it are not shown. If `total`
// is 0 the count alone is shown, otherwise the percentage. Cheap enough to be called for every
// item.
void progress_update(struct progress *p, const char *what, uint64_t done, uint64_t total);

// Wipes the line, if there is one. The next update may show it again.
void progress_clear(struct progress *p);
