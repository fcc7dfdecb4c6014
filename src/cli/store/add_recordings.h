// SPDX-License-Identifier: MIT
// add_recordings: adds many files to a store, on all processors.
//
//   paths -> batches of BATCH_FILES -> workers: profile, rows -> one transaction or INSERT a batch
//
// The files of the next batch are read while the last is added. A file that the store has is not
// read, only hashed. A file that cannot be added ends the command; those before it are added. Rows
// that wait have at most HELD_BYTES_MAX and one recording of each worker more.
// Context: H; the calling thread is the only one that uses the store, and prints.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

// Read the file at `path`, and make the rows of `source`, which has no selection yet. *out_damage,
// if it is not NULL, becomes what is missing from the file, owned by the caller, or NULL.
enum err add_recordings_read(const char *path,
                             const struct name_sources *names,
                             const struct recording_source *source,
                             struct recording_rows *out,
                             char **out_damage,
                             struct err_info *info) MUST_USE;

struct add_counts {
    uint64_t added;
    uint64_t known; // in the store already
};

enum err add_recordings(struct store *store,
                        char *const *paths,
                        int count,
                        const struct name_sources *names,
                        const struct store_labels *labels,
                        struct add_counts *out,
                        struct err_info *info) MUST_USE;
