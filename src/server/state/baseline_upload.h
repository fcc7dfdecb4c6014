// SPDX-License-Identifier: MIT
// baseline_upload: receives a recording as the body of a PUT request: the viewer's second one, or
// one for a store.
//
// The body may be large, so it is written to an unnamed temporary file. A too large Content-Length
// is refused before the client sends the body. The received bytes are counted as well.
// Context: H; the connection's thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/err.h"
#include "server/http/request.h"
#include "server/state/current_recording.h"

#define BASELINE_UPLOAD_MAX_BYTES ((uint64_t)1 << 30)

struct baseline_upload {
    FILE *file;       // owned; NULL before the first bytes
    enum err outcome; // of writing; ERR_LIMIT: too many bytes arrived
    uint64_t bytes;   // received bytes
};

// Whether a body with this Content-Length header may be sent. NULL: there is no such header.
bool baseline_upload_may_come(const char *length);

void baseline_upload_add(struct baseline_upload *upload, struct bytes data);

enum {
    BASELINE_UPLOAD_PATH_BYTES = 32
};

// Write the path at which this process can open what was received. ERR_LIMIT: it was too large;
// ERR_INVALID: nothing came; ERR_IO.
enum err baseline_upload_place(struct baseline_upload *upload,
                               char out_path[BASELINE_UPLOAD_PATH_BYTES],
                               struct err_info *info) MUST_USE;

// Open the received recording, and serve it as the baseline called `name`.
enum err baseline_upload_serve(struct baseline_upload *upload,
                               struct served *served,
                               const char *name,
                               struct problem *problem) MUST_USE;

void baseline_upload_release(struct baseline_upload *upload); // accepts a zeroed one
