// SPDX-License-Identifier: MIT
// baseline_upload: the body of a PUT: a second recording, on its way to be served.
//
// It goes into a temporary file without a name, for it may be large. How large is announced, and
// refused before anything is sent if it is too much; what comes is counted all the same.
// Context: H; the connection's thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/err.h"
#include "server/api/question.h"
#include "server/state/current_recording.h"

#define BASELINE_UPLOAD_MAX_BYTES ((uint64_t)1 << 30)

struct baseline_upload {
    FILE *file;       // owned; NULL until the first bytes
    enum err outcome; // of writing; ERR_LIMIT: more came than may
    uint64_t bytes;   // that came
};

// Whether a body of a length as in a Content-Length header may come. NULL: none was announced.
bool baseline_upload_may_come(const char *length);

void baseline_upload_add(struct baseline_upload *upload, struct bytes data);

// Opens what has arrived, and serves it as the baseline called `name`.
enum err baseline_upload_serve(struct baseline_upload *upload,
                               struct served *served,
                               const char *name,
                               struct problem *problem) MUST_USE;

void baseline_upload_release(struct baseline_upload *upload); // accepts a zeroed one
