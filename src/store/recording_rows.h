// SPDX-License-Identifier: MIT
// recording_rows: puts a recording into a store as rows.
//
// src/profile computes all figures: a stack of the store is a stack of call_sites.h, so the sums of
// a call site equal those of `cairn report`. Functions and stacks get ids from their content, which
// are equal in all recordings:
//
//   function   name without a compiler's clone, and the module's file name; unnamed code: the
//              build-id, too
//   stack      the ids of its functions, innermost first, and file and line of the call site
//
// Stacks that differ only in the lines of outer frames are one stack. Names are cleaned
// (codec/clean_text.h) and cut at STORE_NAME_MAX bytes. Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/select/filter.h"
#include "store/engine.h"

enum {
    STORE_NAME_MAX = 16384, // bytes
};

// What a user says about a recording. Texts are borrowed.
struct store_labels {
    const char *service; // NULL: the file name of the program
    const char *version; // NULL: the build-id of the program
    const char *host;    // NULL: the recorded machine
    const char *labels;  // a JSON object
    bool is_oom;         // memory ran out; else SIGKILL, the kernel's signal for that, tells
};

struct recording_source {
    const struct selection *selection; // the whole recording, its suppressions applied
    const struct store_labels *labels;
    const char *path;
    int64_t id;    // hash of the file's content
    bool has_rows; // the table `rows` has them already
};

// Put all rows between begin and commit of the engine. Errors: those of the engine, ERR_NO_MEMORY.
enum err recording_rows_put(const struct recording_source *source,
                            struct store *engine,
                            struct err_info *info) MUST_USE;
