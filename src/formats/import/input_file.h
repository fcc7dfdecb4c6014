// SPDX-License-Identifier: MIT
// input_file: open any file that a user names as a recording or a profile.
//
// Every command opens recordings here. The recording reader reads cairn's own files, and an
// importer reads each other file whose content it recognizes (importer.h). A file that none of them
// recognizes is refused as the reader refuses it. The path "-" is standard input, which is read to
// its end.
// Context: H; one thread.
#pragma once

#include "base/err.h"
#include "formats/import/importer.h"
#include "profile/model/profile.h"
#include "recording/read/recording_reader.h"

// Set *out to the importer that recognizes the file. Set it to NULL if none does, as for a
// recording. ERR_NOT_FOUND and the other errors of opening a file, with a sentence.
enum err input_find_importer(const char *path, const struct importer **out, struct err_info *info)
    MUST_USE;

// Return whether the file is a recording or one that an importer recognizes, perhaps damaged.
bool input_is_profile(const char *path);

// Open a recording or a foreign file, as recording_open_fd does. `progress` may be NULL. For a
// foreign file, *result has its size, and if it is truncated (RECORDING_TRUNCATED) what is missing.
// *out_importer is its importer, NULL for a recording; it may be NULL.
enum err input_open_recording(const char *path,
                              struct progress *progress,
                              struct recording *out,
                              struct recording_open_result *result,
                              const struct importer **out_importer,
                              struct err_info *info) MUST_USE;

// Open a file as a profile, as profile_from_recording does. The profile owns its data and knows
// which figures the file lacks.
enum err input_open_profile(const char *path,
                            const struct name_sources *sources,
                            struct progress *progress,
                            struct profile **out,
                            struct err_info *info) MUST_USE;

// Open a recording for helpers of a recorder, which have little memory: if it has more rows than
// `rows_max`, at least 1, with those of threads merged and without their history (lean_rows of
// recording_limits).
enum err input_open_lean_profile(const char *path,
                                 const struct name_sources *sources,
                                 uint64_t rows_max,
                                 struct profile **out,
                                 struct err_info *info) MUST_USE;
