// SPDX-License-Identifier: MIT
// token_file: the file that has the token of a server.
//
// Context: H.
#pragma once

#include "base/err.h"
#include "server/access/access.h"

// Read the token. Errors: those of file_read; ERR_INVALID with a sentence if it has no token.
enum err token_file_read(const char *path, struct access_token *out, struct err_info *info)
    MUST_USE;

// Read the token; if there is no such file, draw one and write it to a file that only its owner can
// read.
enum err token_file_read_or_make(const char *path, struct access_token *out, struct err_info *info)
    MUST_USE;
