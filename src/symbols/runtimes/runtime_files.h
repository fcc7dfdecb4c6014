// SPDX-License-Identifier: MIT
// runtime_files: which runtime the file of a program contains, read once for each path.
//
// A path may name other files in other mount namespaces: the first one decides for all. Only a
// sentence depends on it. What cannot be read has no known runtime.
// Context: H; runtime_files_read any thread, the others one. Trust: target_file.h.
#pragma once

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/string_table.h"
#include "recording/format/tables.h"
#include "symbols/runtimes/runtime_table.h"

// A zeroed one knows no file.
struct runtime_files {
    struct map_u64 rows; // path -> 1 + row of the table of runtimes; 0: none
};

void runtime_files_release(struct runtime_files *files);

// Return whether the file was read. *out: NULL if no runtime is known.
bool runtime_files_get(struct runtime_files *files, rec_string path, const struct runtime **out);

// Read a file, which may be done aside: its process chooses how long that takes. pid: the process
// that names the path; 0: none any more. Return NULL if no runtime is known.
const struct runtime *runtime_files_read(const char *path, int pid);

// Note what was read; NULL: none is known, or it was not to be read. ERR_NO_MEMORY.
enum err runtime_files_put(struct runtime_files *files,
                           rec_string path,
                           const struct runtime *runtime) MUST_USE;
