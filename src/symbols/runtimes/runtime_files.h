// SPDX-License-Identifier: MIT
// runtime_files: which runtime the file of a program contains, read once for each path.
//
// A path may name other files in other mount namespaces: the first one decides for all. Only a
// sentence depends on it. What cannot be read has no known runtime.
// Context: H, one thread. Trust: target_file.h.
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

// Read it, if it was not. pid: the process that names the path; 0: none any more. ERR_NO_MEMORY.
enum err runtime_files_find(struct runtime_files *files,
                            const struct string_table *strings,
                            rec_string path,
                            int pid,
                            const struct runtime **out) MUST_USE;
