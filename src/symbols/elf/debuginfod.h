// SPDX-License-Identifier: MIT
// debuginfod: asks the servers in $DEBUGINFOD_URLS for debug information, through libdebuginfod.
//
// The library is loaded with the first question and stays loaded; it is no dependency. Its own
// environment variables hold (DEBUGINFOD_URLS, DEBUGINFOD_TIMEOUT, DEBUGINFOD_CACHE_PATH, ...), and
// what it fetches lies in its own cache, where it and we find it the next time. The servers learn
// which programs the user runs, so they are only asked where he has set their names.
// Context: H; one thread. A question lasts as long as the servers take, or until `go_on` says no.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"

struct debuginfod_library;

enum debuginfod_end {
    DEBUGINFOD_ANSWERED,    // yes or no
    DEBUGINFOD_INTERRUPTED, // by go_on
    DEBUGINFOD_SILENT,      // no server could be reached, or not in time
};

struct debuginfod {
    // Called before a question and a few times a second while it lasts; `total_bytes` is 0 if
    // nobody knows. False ends this question and all that follow. May be NULL.
    bool (*go_on)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void (*end_question)(void *context, enum debuginfod_end end); // may be NULL
    void *context;
    struct debuginfod_library *library; // owned; NULL before the first question
    bool has_given_up;
};

// Whether the user has named servers.
bool debuginfod_is_wanted(void);

// Whether libdebuginfod is there.
bool debuginfod_is_installed(void);

void debuginfod_release(struct debuginfod *servers); // accepts a zeroed one

// Appends the path of what an earlier question has brought for `build_id`. ERR_NOT_FOUND,
// ERR_NO_MEMORY. `servers` may be NULL and is not used.
enum err debuginfod_find_fetched(struct debuginfod *servers,
                                 struct bytes build_id,
                                 struct strbuf *out_path) MUST_USE;

// Appends the path of the debug information for `build_id`. ERR_UNSUPPORTED without the library,
// ERR_NOT_FOUND if no server has it, ERR_CANCELLED once it has given up: interrupted, or because
// the servers were silent once, which costs their time-out. ERR_NO_MEMORY.
enum err debuginfod_fetch(struct debuginfod *servers,
                          struct bytes build_id,
                          struct strbuf *out_path) MUST_USE;
