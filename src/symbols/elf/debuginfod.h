// SPDX-License-Identifier: MIT
// debuginfod: request debug information from the servers in $DEBUGINFOD_URLS, through
// libdebuginfod.
//
// The first request loads the library, and it stays loaded; cairn does not depend on it. Its own
// environment variables apply (DEBUGINFOD_URLS, DEBUGINFOD_TIMEOUT, DEBUGINFOD_CACHE_PATH, ...). It
// keeps downloads in its own cache, where it and cairn find them later. Requests reveal to the
// servers which programs the user runs, so cairn sends them only if the user has set the servers'
// names.
// Context: H; one thread. A request lasts until the servers answer, until `go_on` returns false, or
// until no byte has come for half a minute ($DEBUGINFOD_TIMEOUT seconds).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"

struct debuginfod_library;

enum debuginfod_end {
    DEBUGINFOD_ANSWERED,    // the servers have it or do not
    DEBUGINFOD_INTERRUPTED, // by go_on
    DEBUGINFOD_SILENT,      // no server was reachable, or none answered in time
    DEBUGINFOD_FAILED,      // in another way, such as a redirection without end
    DEBUGINFOD_WRONG,       // of no request: what a server gave is not what it was asked for
};

struct debuginfod {
    // Called before a request and a few times a second during it. `total_bytes` is 0 if unknown.
    // False ends this request and all later ones. May be NULL.
    bool (*go_on)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void (*end_request)(void *context, enum debuginfod_end end); // may be NULL
    void *context;
    struct debuginfod_library *library; // owned; NULL before the first request
    bool has_given_up;
    bool has_wrong; // end_request has been called for DEBUGINFOD_WRONG, which is once
    // Of the current request:
    uint64_t heard_ms;    // when bytes came last, or it began; CLOCK_MONOTONIC
    uint64_t heard_bytes; // so far
    bool is_silent;
};

// Return whether the user has named servers.
bool debuginfod_is_wanted(void);

// Return whether libdebuginfod is installed.
bool debuginfod_is_installed(void);

void debuginfod_release(struct debuginfod *servers); // accepts a zeroed one

// Append the path of an earlier download for `build_id`. ERR_NOT_FOUND, ERR_NO_MEMORY. `servers` is
// unused and may be NULL.
enum err debuginfod_find_fetched(struct debuginfod *servers,
                                 struct bytes build_id,
                                 struct strbuf *out_path) MUST_USE;

// Append the path of the debug information for `build_id`. ERR_UNSUPPORTED without the library,
// ERR_NOT_FOUND if no server has it, ERR_NO_MEMORY. ERR_CANCELLED after an interruption, and after
// a request that no server answered, or that failed, because each of those costs time.
enum err debuginfod_fetch(struct debuginfod *servers,
                          struct bytes build_id,
                          struct strbuf *out_path) MUST_USE;

// Note that a fetched file is of another build, or none of debug information.
void debuginfod_note_wrong(struct debuginfod *servers);
