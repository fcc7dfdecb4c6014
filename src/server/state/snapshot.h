// SPDX-License-Identifier: MIT
// snapshot: the immutable set of data that queries are answered from: a recording, and optionally
// a second one to compare with.
//
// A snapshot never changes. Requests hold a reference while they are answered. When the file is
// rewritten or a baseline is put, the server makes a new snapshot that shares all unchanged parts.
// Ids in answers are valid within one generation, which is the number of a snapshot.
// Context: H; any number of threads read.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "profile/model/code_union.h"
#include "profile/model/profile.h"
#include "profile/select/suppressions.h"
#include "profile/tables/summary.h"

// An open recording. Snapshots share it.
struct opened {
    atomic_uint references;
    char *path; // owned; for display
    const struct profile *profile;
    struct profile *owned;       // the same profile, or NULL if it is borrowed
    struct suppressions rules;   // owned; for leaks
    struct selection everything; // owned; without a filter; has `kept`
    struct kept_results kept;    // what answers without a filter share
    struct summary whole;        // of `everything`
    uint64_t bytes;              // size of the file
    uint64_t identity;           // see file_identity
};

// How to open a recording. Borrowed.
struct opening {
    const struct name_sources *sources; // of names; may be NULL
    struct suppression_choice rules;
    struct progress *progress; // may be NULL
};

// Open the recording at `path` and call it `shown_path`. The caller receives the only reference.
// Errors: those of input_open_profile and of the file of rules.
enum err opened_new(const char *path,
                    const char *shown_path,
                    const struct opening *opening,
                    struct opened **out,
                    struct err_info *info) MUST_USE;

// Wrap a profile that is already open and must outlive the result, with the usual rules.
// ERR_NO_MEMORY.
enum err opened_borrow(const struct profile *profile, const char *path, struct opened **out)
    MUST_USE;
void opened_unrefp(struct opened **opened);

struct snapshot {
    atomic_uint references;
    uint64_t generation;
    struct opened *sides[SIDE_COUNT];    // owned references; SIDE_OLD may be NULL
    struct code_union alone[SIDE_COUNT]; // owned; each side alone, as SIDE_NEW of its union
    struct code_union both;              // owned; empty without a baseline
    struct code_union twice; // owned; the new side against itself, to compare its time ranges
};

// Create a snapshot with references of its own. `old` may be NULL. ERR_NO_MEMORY.
enum err
snapshot_new(uint64_t generation, struct opened *new, struct opened *old, struct snapshot **out)
    MUST_USE;
struct snapshot *snapshot_ref(struct snapshot *snapshot);
void snapshot_unref(struct snapshot *snapshot); // accepts NULL
void snapshot_unrefp(struct snapshot **snapshot);

// Append the state of the recording as JSON, for the events "hello" and "recording". ERR_NO_MEMORY.
enum err snapshot_write_state(const struct snapshot *snapshot, struct strbuf *out) MUST_USE;
