// SPDX-License-Identifier: MIT
// preload_path: a path of the preload library that LD_PRELOAD can hold.
//
// LD_PRELOAD is a list, separated by spaces and colons, without a way to quote them, and the loader
// replaces what follows a dollar sign (ld.so(8)). In a path with such a character the folder is
// replaced by /proc/<recorder pid>/fd/<n>, a descriptor that stays open while the recorder lives.
// The file's name stays, because the library finds its own entry by it (environment.h).
// Context: H.
#pragma once

#include "base/err.h"
#include "host/text/strbuf.h"

struct preload_path {
    struct strbuf name; // owned; the value for LD_PRELOAD
    int fd;             // owned; -1 if the path itself is valid
};

#define PRELOAD_PATH_INIT \
    {                     \
        .fd = -1          \
    }

// Fill `out`, which is PRELOAD_PATH_INIT. Fails if the folder cannot be opened; ERR_NO_MEMORY.
enum err preload_path_find(const char *library, struct preload_path *out, struct err_info *info)
    MUST_USE;

void preload_path_release(struct preload_path *path);
