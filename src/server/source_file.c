// SPDX-License-Identifier: MIT
// source_file: see source_file.h.
#include "server/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/compiler.h"
#include "host/file.h"

// By where the opened file really lies, whatever links led there.
static bool is_of_the_kernel(int fd)
{
    struct statfs system;
    if (fstatfs(fd, &system) != 0) {
        return true; // whatever it is, it cannot be vouched for
    }
    static const long kinds[] = {PROC_SUPER_MAGIC,   SYSFS_MAGIC,        DEBUGFS_MAGIC,
                                 TRACEFS_MAGIC,      CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
                                 DEVPTS_SUPER_MAGIC, SECURITYFS_MAGIC};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (system.f_type == kinds[i]) {
            return true;
        }
    }
    return false;
}

static MUST_USE enum err
open_regular(const char *path, int *out, struct stat *status, struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    if (path[0] != '/') {
        return err_set(info, ERR_INVALID, "the recording knows this file by a relative path only");
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot open the source file");
    }
    if (fstat(fd, status) != 0) {
        return err_set_errno(info, errno, "cannot look at the source file");
    }
    if (!S_ISREG(status->st_mode) || is_of_the_kernel(fd)) {
        return err_set(info, ERR_INVALID, "what is there is no regular file");
    }
    *out = fd;
    fd = -1;
    return ERR_OK;
}

enum err source_file_read(const char *path,
                          struct strbuf *text,
                          uint64_t *modified_ms,
                          struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    struct stat status = {0};
    TRY(open_regular(path, &fd, &status, info));
    if (file_read_fd(fd, path, SOURCE_FILE_MAX_BYTES, text, info) == ERR_LIMIT) {
        return err_set(info, ERR_LIMIT, "the source file is larger than %d MiB",
                       SOURCE_FILE_MAX_BYTES >> 20);
    }
    if (memchr(strbuf_text(text), '\0', text->len) != NULL) {
        return err_set(info, ERR_INVALID, "the file is not text");
    }
    *modified_ms =
        (uint64_t)status.st_mtim.tv_sec * 1000 + (uint64_t)status.st_mtim.tv_nsec / 1000000;
    return ERR_OK;
}
