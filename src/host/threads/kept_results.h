// SPDX-License-Identifier: MIT
// kept_results: results of one source that several callers share.
//
//   source -> [ kind | value ] [ kind | value ] ...
//
// The first caller that needs a result builds it; others wait for it and borrow it. If a build
// fails or is cancelled, the next caller begins it anew. All results together have at most a number
// of bytes: a result that does not fit is not kept, and belongs to the caller that built it.
// Context: H; any thread. Each entry has a mutex, so a build may need results of other kinds.
// Kinds must not need each other in a circle.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum {
    KEPT_KINDS_MAX = 16
};

// A kind of result. Its address identifies it.
struct kept_kind {
    size_t bytes; // of the result's struct
    enum err (*build)(const void *source, void *out);
    size_t (*weigh)(const void *result); // bytes that the struct owns; NULL: none
    void (*release)(void *result);
};

// Define the kind `name` of results that are a `type`. The first expression builds `out` from
// `source`; the others weigh and release `result`.
#define DEFINE_KEPT_KIND(name, type, build_out, weigh_result, release_result) \
    static enum err name##_build(const void *source, void *out)               \
    {                                                                         \
        return build_out;                                                     \
    }                                                                         \
    static size_t name##_weigh(const void *result)                            \
    {                                                                         \
        (void)result;                                                         \
        return weigh_result;                                                  \
    }                                                                         \
    static void name##_release(void *result)                                  \
    {                                                                         \
        release_result;                                                       \
    }                                                                         \
    static const struct kept_kind name = {sizeof(type), name##_build, name##_weigh, name##_release}

struct kept_entry {
    pthread_mutex_t mutex; // protects what follows but for `kind`
    const struct kept_kind *kind;
    void *value;       // owned; NULL: not built
    bool is_too_large; // it did not fit
};

struct kept_results {
    pthread_mutex_t mutex; // protects the entries' kinds, and `bytes`
    size_t bytes;          // of all values
    size_t most_bytes;
    struct kept_entry entries[KEPT_KINDS_MAX];
};

void kept_results_init(struct kept_results *kept, size_t most_bytes);
void kept_results_release(struct kept_results *kept); // accepts a zeroed one

// Copy the struct of the result of `kind`, which is built from `source`. *is_lent: what it owns is
// borrowed, and valid until `kept` is released; else it is the caller's. It may be a field of
// `out`, which the build leaves false. All calls must pass sources that give the same result.
// Without `kept` the result is built for the caller.
// Errors: those of the kind's build; ERR_LIMIT: too many kinds.
enum err kept_results_get(struct kept_results *kept,
                          const struct kept_kind *kind,
                          const void *source,
                          void *out,
                          bool *is_lent) MUST_USE;
