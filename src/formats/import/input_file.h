// SPDX-License-Identifier: MIT
// input_file: the one place where a file that a user names becomes a recording or a profile.
//
// Whatever takes a recording opens it here: a file of cairn's own is read by its reader, everything
// else by the importer that recognizes its content (importer.h). A file that nobody knows is
// refused as the reader refuses it. The path "-" is standard input, which is read to its end.
// Context: H; one thread.
#pragma once

#include "base/err.h"
#include "formats/import/importer.h"
#include "profile/model/profile.h"
#include "recording/read/recording_reader.h"

// Sets *out to the importer that knows the file, NULL if none does, as none does for a recording.
// ERR_NOT_FOUND and what else opening a file can say, with a sentence.
enum err input_find_importer(const char *path, const struct importer **out, struct err_info *info)
    MUST_USE;

// As recording_open. `progress` may be NULL. Of a foreign file, *result has its size, whether it is
// cut (RECORDING_TRUNCATED), and what is missing then. *out_importer is who read it, NULL for the
// reader of recordings; it may be NULL.
enum err input_open_recording(const char *path,
                              struct progress *progress,
                              struct recording *out,
                              struct recording_open_result *result,
                              const struct importer **out_importer,
                              struct err_info *info) MUST_USE;

// As profile_from_recording, but the profile owns what it holds and knows what the file lacks.
enum err input_open_profile(const char *path,
                            const struct name_sources *sources,
                            struct progress *progress,
                            struct profile **out,
                            struct err_info *info) MUST_USE;
