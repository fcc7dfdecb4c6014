// SPDX-License-Identifier: MIT
// progress: one line on the terminal with the current work and its progress.
//
// It shows nothing if the stream is not a terminal, nothing during the first second, and at most
// ten changes a second. Each change overwrites the line, truncated to the terminal's width; the end
// wipes it. The clock is a parameter, so tests need not wait. Output errors are ignored, because
// progress must not make the work fail. Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *stream; // borrowed; NULL: silent
    uint64_t (*now_ns)(void *context);
    void *clock_context;
    uint64_t started_ns;
    uint64_t shown_ns; // time of the line's last change
    bool is_visible;
    unsigned width_columns;
};

// Use `stream` if it is a terminal, with the monotonic clock. Otherwise, or if it is NULL, stay
// silent.
void progress_init(struct progress *p, FILE *stream);

// Use `stream` of any kind, with the given clock.
void progress_init_with_clock(struct progress *p,
                              FILE *stream,
                              unsigned width_columns,
                              uint64_t (*now_ns)(void *context),
                              void *clock_context);

// Set the progress. `what` is a phrase such as "reading symbols"; control characters in it are not
// shown. If `total` is 0 the line shows the count, otherwise the percentage. Cheap enough to be
// called for every item.
void progress_update(struct progress *p, const char *what, uint64_t done, uint64_t total);

// Wipe the line, if there is one. The next update may show it again.
void progress_clear(struct progress *p);
