// SPDX-License-Identifier: MIT
// recording_file: opening a path as a recording, or saying what it is instead.
// Context: H.
#pragma once

#include "base/err.h"
#include "recording/format/chunk_source.h"

// Opens `path` and points `source` at it. Refuses a directory and everything else that is no
// regular file (ERR_INVALID) without waiting for a pipe's writer. The descriptor is the caller's.
enum err recording_file_open(const char *path,
                             int *out_fd,
                             struct chunk_source *out_source,
                             struct err_info *info) MUST_USE;

// The same from a descriptor that is open, which stays the caller's.
enum err recording_file_source(int fd,
                               const char *name,
                               struct chunk_source *out_source,
                               struct err_info *info) MUST_USE;

// Reads the header. ERR_TRUNCATED: empty, or cut within it; ERR_INVALID: not a recording;
// ERR_UNSUPPORTED: a newer version. A damaged header is not refused: each
// chunk has checksums of its own.
enum err recording_file_check(const struct chunk_source *source,
                              struct file_header *out,
                              struct err_info *info) MUST_USE;
