// SPDX-License-Identifier: MIT
// recording_file: open a path as a recording, or report what the file is instead.
// Context: H.
#pragma once

#include "base/err.h"
#include "recording/format/chunk_source.h"

// Open `path` and point `source` at it. Refuse a directory and every other file that is not regular
// (ERR_INVALID) without waiting for a pipe's writer. The caller owns the descriptor.
enum err recording_file_open(const char *path,
                             int *out_fd,
                             struct chunk_source *out_source,
                             struct err_info *info) MUST_USE;

// Point `source` at an open descriptor, with the same checks. The caller keeps the descriptor.
enum err recording_file_source(int fd,
                               const char *name,
                               struct chunk_source *out_source,
                               struct err_info *info) MUST_USE;

// Read the header. ERR_TRUNCATED: the file is empty or ends within the header; ERR_INVALID: it is
// not a recording; ERR_UNSUPPORTED: its version is newer. A damaged header is accepted, because
// each chunk has its own checksums.
enum err recording_file_check(const struct chunk_source *source,
                              struct file_header *out,
                              struct err_info *info) MUST_USE;
