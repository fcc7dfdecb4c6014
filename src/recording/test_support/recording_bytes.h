// SPDX-License-Identifier: MIT
// recording_bytes: recordings by path and in memory, for tests. The readers take descriptors, so
// bytes become a file without a name (memfd_create(2)). Context: H.
#pragma once

#include "base/bytes.h"
#include "recording/read/recording_reader.h"
#include "recording/write/recording_writer.h"

// Open the recording at `path`, or in `file`, as recording_open_fd does. `name` is for errors.
enum err recording_open(const char *path,
                        struct recording *out,
                        struct recording_open_result *result,
                        struct err_info *info) MUST_USE;
enum err recording_open_bytes(struct bytes file,
                              const char *name,
                              const struct recording_limits *limits,
                              struct recording *out,
                              struct recording_open_result *result,
                              struct err_info *info) MUST_USE;

// Append a chunk of any type that belongs to no snapshot.
enum err recording_append_chunk(struct recording_writer *w,
                                uint32_t type,
                                struct bytes payload,
                                struct err_info *info) MUST_USE;
