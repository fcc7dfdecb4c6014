// SPDX-License-Identifier: MIT
// preload_path: the preload library under a name that LD_PRELOAD can hold.
//
// LD_PRELOAD is a list that spaces and colons separate, and knows no way to quote them (ld.so(8)).
// A library whose path has one is therefore named /proc/<our pid>/fd/<n>, a descriptor that stays
// open as long as the recorder lives. Context: H.
#pragma once

#include "base/err.h"
#include "host/text/strbuf.h"

struct preload_path {
    struct strbuf name; // owned; what to write into LD_PRELOAD
    int fd;             // owned; -1 where the path itself will do
};

#define PRELOAD_PATH_INIT \
    {                     \
        .fd = -1          \
    }

// Fills `out`, which is PRELOAD_PATH_INIT. Errors: those of opening the library; ERR_NO_MEMORY.
enum err preload_path_find(const char *library, struct preload_path *out, struct err_info *info)
    MUST_USE;

void preload_path_release(struct preload_path *path);
