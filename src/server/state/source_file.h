// SPDX-License-Identifier: MIT
// source_file: the text of a source file that a recording names, if it may be shown.
//
// Paths come from debug information, hence from strangers, who may name any file of the reader's: a
// file is read only if it is called like a source file, wherever links lead, if it is a regular
// one, of bounded size, outside the kernel's own file systems, and text. Which paths may be asked
// for at all, the caller has decided: those that frames of the recording name. Context: H. Nothing
// blocks: files are opened without waiting for pipes or devices.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"

enum {
    SOURCE_FILE_MAX_BYTES = 4 << 20
};

// Appends the file's bytes to `text` and sets *modified_ms (since 1970). Refused, with a sentence:
// ERR_NOT_FOUND, ERR_PERMISSION, ERR_INVALID (relative, no source
// file by its name, not regular, no text), ERR_LIMIT (too
// large), ERR_IO.
enum err source_file_read(const char *path,
                          struct strbuf *text,
                          uint64_t *modified_ms,
                          struct err_info *info) MUST_USE;
