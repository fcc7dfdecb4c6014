// SPDX-License-Identifier: MIT
// output_file: can the recording be written where it shall go? Asked before the program runs.
//
// Context: H. Creates missing folders; leaves nothing else behind.
#pragma once

#include "base/err.h"

// Creates the folders of `path`, and tries to create and remove a file there. What is at `path`
// may be a file, which the recording will replace, but nothing else: a device or a pipe would be
// replaced too. ERR_INVALID, ERR_PERMISSION, ERR_NOT_FOUND, ERR_IO; the text names the path.
enum err output_file_probe(const char *path, struct err_info *info) MUST_USE;
