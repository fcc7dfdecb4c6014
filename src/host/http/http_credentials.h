// SPDX-License-Identifier: MIT
// http_credentials: the secret of an HTTP client, from a file or the environment.
//
// It is one line: a token, or USER:PASSWORD. Command lines are no place for it, because every user
// of the machine can read them.
// Context: H, before there are threads: it changes the environment.
#pragma once

#include "base/err.h"

// Read the credentials from `path`, or from the environment's `variable` if `path` is NULL. *out is
// owned by the caller; NULL: there are none. The variable is removed from the environment, so that
// a recorded program does not inherit it. ERR_INVALID, ERR_IO: with a sentence that begins with
// `option` if the file is the reason.
enum err http_credentials_read(const char *path,
                               const char *variable,
                               const char *option,
                               char **out,
                               struct err_info *info) MUST_USE;
