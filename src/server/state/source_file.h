// SPDX-License-Identifier: MIT
// source_file: reads a source file that a recording names, if it may be shown.
//
// Paths come from debug information, which is hostile: it may name any file of the user. A file
// must have the name of a source file after all links are resolved, and be regular, of bounded
// size, outside the kernel's file systems, and text. The caller only passes paths that frames of
// the recording name.
// Context: H. It never blocks: files are opened without waiting for pipes or devices.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"

enum {
    SOURCE_FILE_MAX_BYTES = 4 << 20
};

// Append the file's bytes to `text` and set *modified_ms (since 1970). Refusals, with a sentence:
// ERR_NOT_FOUND, ERR_PERMISSION, ERR_INVALID (relative path, name of another kind of file, not
// regular, not text), ERR_LIMIT (too large), ERR_IO.
enum err source_file_read(const char *path,
                          struct strbuf *text,
                          uint64_t *modified_ms,
                          struct err_info *info) MUST_USE;
