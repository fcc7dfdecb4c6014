// SPDX-License-Identifier: MIT
// unpacked_bytes: for tests: reads bytes as the content of a file.
#pragma once

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/import/unpacked.h"

// Open the bytes as unpacked_open_fd opens a file. There is one such file at a time.
static inline MUST_USE enum err
unpacked_open_bytes(struct unpacked *u, struct bytes file, const char *path, struct err_info *info)
{
    static int fd = -1;
    fd = fd < 0 ? memfd_create("unpacked", MFD_CLOEXEC) : fd;
    if (ftruncate(fd, 0) != 0 || pwrite(fd, file.data, file.len, 0) != (ssize_t)file.len ||
        lseek(fd, 0, SEEK_SET) != 0) {
        abort();
    }
    return unpacked_open_fd(u, fd, file.len, path, info);
}
