// SPDX-License-Identifier: MIT
// err: the reasons for which a function can fail, and the details that a person needs to act.
//
// Functions that can fail return `enum err`; ERR_OK is 0. They write their out parameters only on
// success. Where a person will read about the failure, they also take `struct err_info *`, which
// may be NULL. Libraries never print: only src/cli does, and src/recorder logs. Context: `enum err`
// is T and H; filling err_info formats text and is H only.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum err {
    ERR_OK = 0,
    ERR_NO_MEMORY,   // an allocation or mapping of ours failed
    ERR_IO,          // a system call failed; err_info.errno_value has the reason
    ERR_NOT_FOUND,   // the requested thing does not exist
    ERR_PERMISSION,  // it exists, but access is denied
    ERR_INVALID,     // the caller's or the user's input is not valid
    ERR_CORRUPT,     // input contradicts its own format or checksum
    ERR_TRUNCATED,   // input ends before its format allows
    ERR_UNSUPPORTED, // input is well formed, but of an unsupported kind or version
    ERR_LIMIT,       // input asks for more than a documented bound
    ERR_DEAD,        // the other side of a session has ended
    ERR_CANCELLED,   // the user asked to stop
};

struct err_info {
    enum err code;
    int errno_value; // 0 if no system call was involved
    char text[512];  // one sentence without a full stop, for people
};

// Fill `info` (may be NULL) and return `code`, so that a failure is one statement.
enum err err_set(struct err_info *info, enum err code, const char *format, ...) PRINTF_LIKE(3, 4);

// Fill `info` for a failed system call: keep `errno_value` and append its text. The code is
// ERR_NOT_FOUND for ENOENT, ERR_PERMISSION for EACCES and EPERM, ERR_NO_MEMORY for ENOMEM, else
// ERR_IO.
enum err err_set_errno(struct err_info *info, int errno_value, const char *format, ...)
    PRINTF_LIKE(3, 4);

// Return whether a system call failed because this process or the machine has no more descriptors
// or memory. Such a failure says nothing of what the call was about.
bool err_is_own_lack(int errno_value);

// Return the sentence of a failure. A lack of memory has the same one everywhere, so a function
// that returns ERR_NO_MEMORY need not fill `info`, which the caller has zeroed.
const char *err_text(const struct err_info *info);

// Return a short name of the code ("corrupt"), for logs and tests. Never NULL.
const char *err_name(enum err code);
