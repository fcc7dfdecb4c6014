// SPDX-License-Identifier: MIT
// output_file: check, before the program runs, that the recording can be written to its path.
//
// Context: H. It creates missing folders and leaves nothing else behind.
#pragma once

#include "base/err.h"

// Create the folders of `path`, then create and remove a file there, behind symbolic links
// (file_find_target). What is at `path` must be absent, empty or a recording, whole or not: a file
// of another kind was named by mistake, and replacing would remove a device or a pipe.
// ERR_NOT_FOUND, ERR_INVALID, ERR_PERMISSION, ERR_IO; the text names the path.
enum err output_file_probe(const char *path, struct err_info *info) MUST_USE;
