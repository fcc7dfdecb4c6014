// SPDX-License-Identifier: MIT
// kept_results: results of one source that several callers share.
//
//   source -> [ kind | value ] [ kind | value ] ...
//
// The first caller that needs a result builds it; others wait for it and borrow it. If a build
// fails or is cancelled, the next caller begins it anew.
// Context: H; any thread. Each entry has a mutex, so a build may need results of other kinds.
// Kinds must not need each other in a circle.
#pragma once

#include <pthread.h>
#include <stddef.h>

#include "base/err.h"

enum {
    KEPT_KINDS_MAX = 16
};

// A kind of result. Its address identifies it.
struct kept_kind {
    size_t bytes; // of the result
    enum err (*build)(const void *source, void *out);
    void (*release)(void *result);
};

struct kept_entry {
    pthread_mutex_t mutex; // protects `value`
    const struct kept_kind *kind;
    void *value; // owned; NULL: not built
};

struct kept_results {
    pthread_mutex_t mutex; // protects the entries' kinds
    struct kept_entry entries[KEPT_KINDS_MAX];
};

void kept_results_init(struct kept_results *kept);
void kept_results_release(struct kept_results *kept); // accepts a zeroed one

// Get the result of `kind`, which is built from `source`. It is valid until `kept` is released. All
// calls must pass sources that give the same result. Errors: those of the kind's build; ERR_LIMIT:
// too many kinds.
enum err kept_results_get(struct kept_results *kept,
                          const struct kept_kind *kind,
                          const void *source,
                          const void **out) MUST_USE;
