// SPDX-License-Identifier: MIT
// snapshot: what is served at one moment: a recording, perhaps a second one to compare it with, and
// what every question about them needs.
//
// A snapshot never changes. Requests hold a reference while they are answered; when the file is
// rewritten or a baseline is put, the server makes a new snapshot that shares what is still the
// same. Ids in answers hold within one generation, which is a snapshot's number.
// Context: H; any number of threads read.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "profile/model/code_union.h"
#include "profile/model/profile.h"
#include "profile/select/suppressions.h"
#include "profile/tables/summary.h"

// A recording, opened. Shared by the snapshots that serve it.
struct opened {
    atomic_uint references;
    char *path; // owned; as shown
    const struct profile *profile;
    struct profile *owned;     // the same; NULL if it is borrowed
    struct suppressions rules; // owned; for leaks, the usual ones
    struct summary whole;      // of everything
    uint64_t bytes;            // of the file
    uint64_t identity;         // of file and contents, as far as stat tells
};

// Opens the recording at `path` and calls it `shown_path`. `sources`, of names, may be NULL. The
// caller has the only reference. Errors: those of input_open_profile.
enum err opened_new(const char *path,
                    const char *shown_path,
                    const struct name_sources *sources,
                    struct opened **out,
                    struct err_info *info) MUST_USE;

// A recording that is open already; `profile` must outlive it. ERR_NO_MEMORY.
enum err opened_borrow(const struct profile *profile, const char *path, struct opened **out)
    MUST_USE;
struct opened *opened_ref(struct opened *opened);
void opened_unref(struct opened *opened); // accepts NULL
void opened_unrefp(struct opened **opened);

// What tells one state of a file from the next.
uint64_t file_identity(const struct stat *status);

struct snapshot {
    atomic_uint references;
    uint64_t generation;
    struct opened *sides[SIDE_COUNT];    // owned references; that of SIDE_OLD may be NULL
    struct code_union alone[SIDE_COUNT]; // owned; each side by itself, as SIDE_NEW of its union
    struct code_union both;              // owned; without contents if there is no baseline
};

// Takes references of its own. `old` may be NULL. ERR_NO_MEMORY.
enum err
snapshot_new(uint64_t generation, struct opened *new, struct opened *old, struct snapshot **out)
    MUST_USE;
struct snapshot *snapshot_ref(struct snapshot *snapshot);
void snapshot_unref(struct snapshot *snapshot); // accepts NULL
void snapshot_unrefp(struct snapshot **snapshot);
