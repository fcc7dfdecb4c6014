// SPDX-License-Identifier: MIT
// output_file: can the recording be written where it shall go? Asked before the program runs.
//
// Context: H. Creates missing folders; leaves nothing else behind.
#pragma once

#include "base/err.h"

// Whether what is at `path` may be replaced by a recording: nothing, an empty file or a recording,
// whole or not. A file of another kind was named by mistake, and a device or a pipe would be
// replaced too. ERR_INVALID, ERR_PERMISSION, ERR_IO; the text names the path.
enum err output_file_check_old(const char *path, struct err_info *info) MUST_USE;

// Creates the folders of `path`, and tries to create and remove a file there, behind symbolic links
// (file_find_target). As above, and ERR_NOT_FOUND.
enum err output_file_probe(const char *path, struct err_info *info) MUST_USE;
