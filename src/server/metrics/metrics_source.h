// SPDX-License-Identifier: MIT
// metrics_source: the documents that collectors fetch, computed from a recording under way.
//
//   checkpoint (a file) --first request after it--> profile --each document once--> response
//
// The recorder replaces the file with each checkpoint. A request reads the file if it is new, and
// at most a fifth of the time, so that many requests cost no more than few. Each document is
// computed once for each checkpoint, by one thread; all connections share the result, so slow
// clients take no memory for it. Until the first checkpoint there are no documents.
//
// The figures are those of `cairn report` of the same checkpoint: the exporters write them.
// Context: H; any thread. Failure: while a new file cannot be read, the documents of the old one
// stay.
#pragma once

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/os/side_process.h"
#include "profile/model/profile.h"

enum metrics_document {
    METRICS_PROMETHEUS,
    METRICS_HEAP,   // pprof, which shows the memory in use
    METRICS_ALLOCS, // the same profile, which shows all allocations
    METRICS_DOCUMENT_COUNT,
};

struct metrics_source {
    const struct name_sources *names; // borrowed; may be NULL
    pid_t recorder;                   // whose cost the metrics show
    atomic_bool has_read;             // a checkpoint
    pthread_mutex_t mutex;            // protects the fields below
    char *path;                       // owned; NULL until the recorder has told it
    struct profile *profile;          // owned; NULL until a checkpoint was read
    uint64_t identity;                // of the file that was read last, or could not be read
    uint64_t not_before_ms;           // earliest time of reading again
    struct MHD_Response *documents[METRICS_DOCUMENT_COUNT]; // owned; NULL: not computed yet
};

#define METRICS_SOURCE_INIT                \
    {                                      \
        .mutex = PTHREAD_MUTEX_INITIALIZER \
    }

// Serve the recording that the message names. ERR_NO_MEMORY.
enum err metrics_source_set_path(struct metrics_source *source, const struct side_message *message)
    MUST_USE;

// Return whether there is a checkpoint to serve. It never waits for another request.
bool metrics_source_is_ready(struct metrics_source *source);

// Queue a document for the connection. `pid`: only of this process, computed for each request; 0:
// of all. ERR_NOT_FOUND: there is no checkpoint yet; ERR_INVALID: there is no such process; other
// errors come with a sentence. *out is the result for libmicrohttpd.
enum err metrics_source_send(struct metrics_source *source,
                             enum metrics_document document,
                             uint32_t pid,
                             struct MHD_Connection *connection,
                             enum MHD_Result *out,
                             struct err_info *info) MUST_USE;
