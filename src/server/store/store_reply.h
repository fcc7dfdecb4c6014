// SPDX-License-Identifier: MIT
// store_reply: the answers of `cairn analyze --store`: what a store of recordings says.
//
//   GET /api/v1/store/QUERY       a table: list, top, versions, growth, diff, hosts, history, oom
//   PUT /api/v1/store/recording   opens one recording; answers with the address of its viewer
//
// The store is opened for each query, so a server that was away is asked again, and one query
// is answered at a time. A recording is opened only if its file still has the content that the
// store knows: a path in a store is hostile, and names no other file.
// Context: H; the connection's thread. Trust: requests and the store are hostile.
#pragma once

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"
#include "host/text/strbuf.h"

#define STORE_REPLY_PREFIX    "/api/v1/store/"
#define STORE_REPLY_RECORDING STORE_REPLY_PREFIX "recording"

struct store_service {
    const char *place;      // borrowed; of the store, NULL: the user's own
    pthread_mutex_t asking; // one query at a time; protects what `open` uses
    // Open the viewer of a recording and append its address. `info` has a sentence after a failure.
    enum err (*open)(void *context,
                     const char *path,
                     struct strbuf *out_address,
                     struct err_info *info);
    void *context;
};

// Answer a GET or HEAD of a target below the prefix.
enum MHD_Result store_reply_send(struct store_service *service,
                                 struct MHD_Connection *connection,
                                 const char *target);

// Answer the PUT of a recording.
enum MHD_Result store_reply_open(struct store_service *service, struct MHD_Connection *connection);
