// SPDX-License-Identifier: MIT
#include "server/state/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/file.h"

// Whether the opened file is in a file system of the kernel, after all links were followed.
static bool is_of_the_kernel(int fd)
{
    struct statfs system;
    if (fstatfs(fd, &system) != 0) {
        return true; // unknown: refuse
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

// Whether the name is one of source files. Keys, settings and password lists have other names.
static bool is_named_like_source(const char *path)
{
    static const char *const suffixes[] = {
        "c",    "h",   "cc",  "hh",    "cpp",  "hpp", "cxx", "hxx", "c++", "h++", "inl", "ipp",
        "tpp",  "tcc", "inc", "def",   "m",    "mm",  "s",   "asm", "y",   "l",   "rs",  "d",
        "go",   "f",   "for", "f90",   "f95",  "f03", "f08", "pas", "adb", "ads", "zig", "nim",
        "cr",   "hs",  "ml",  "swift", "vala", "cu",  "cuh", "cl",  "pyx", "py",  "js",  "ts",
        "java", "kt",  "cs",  "rb",    "pl",   "lua", "php", "erl", "jl",  "r"};
    const char *name = path_file_name(path);
    const char *dot = strrchr(name, '.');
    if (dot == NULL) {
        return strstr(path, "/include/") != NULL; // C++'s <vector>
    }
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (strcasecmp(dot + 1, suffixes[i]) == 0) {
            return true;
        }
    }
    return false;
}

// Check the name of the opened file, after all links were followed.
static bool is_really_named_like_source(int fd)
{
    char link[32];
    char path[PATH_MAX];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); // fits
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    if (len <= 0) {
        return false;
    }
    path[len] = '\0';
    return is_named_like_source(path);
}

static MUST_USE enum err
open_regular(const char *path, int *out, struct stat *status, struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    if (path[0] != '/') {
        return err_set(info, ERR_INVALID, "the recording has only a relative path for this file");
    }
    if (!is_named_like_source(path)) {
        return err_set(info, ERR_INVALID, "its name is not that of a source file");
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot open the source file");
    }
    if (fstat(fd, status) != 0) {
        return err_set_errno(info, errno, "cannot stat the source file");
    }
    if (!S_ISREG(status->st_mode) || is_of_the_kernel(fd)) {
        return err_set(info, ERR_INVALID, "it is not a regular file");
    }
    if (!is_really_named_like_source(fd)) {
        return err_set(info, ERR_INVALID, "it links to a file without the name of a source file");
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
    const enum err err = file_read_fd(fd, path, SOURCE_FILE_MAX_BYTES, text, info);
    if (err == ERR_LIMIT) {
        return err_set(info, ERR_LIMIT, "the source file is larger than %d MiB",
                       SOURCE_FILE_MAX_BYTES >> 20);
    }
    TRY(err);
    if (memchr(strbuf_text(text), '\0', text->len) != NULL) {
        return err_set(info, ERR_INVALID, "the file is not text");
    }
    *modified_ms =
        (uint64_t)status.st_mtim.tv_sec * MS_PER_S + (uint64_t)status.st_mtim.tv_nsec / NS_PER_MS;
    return ERR_OK;
}
