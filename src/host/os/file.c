// SPDX-License-Identifier: MIT
#include "host/os/file.h"

#include "base/compiler.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_ROOM_BYTES = 4096, // at least, for a read; files of /proc give no more at once
};

void fd_closep(int *fd)
{
    if (*fd >= 0) {
        int saved_errno = errno;
        (void)close(*fd); // was only read, or an error is already being returned
        errno = saved_errno;
        *fd = -1;
    }
}

void directory_closep(DIR **directory)
{
    if (*directory != NULL) {
        int saved_errno = errno;
        (void)closedir(*directory); // was only read
        errno = saved_errno;
    }
}

void stream_closep(FILE **stream)
{
    if (*stream != NULL) {
        int saved_errno = errno;
        (void)fclose(*stream); // was only read, or an error is already being returned
        errno = saved_errno;
        *stream = NULL;
    }
}

void text_freep(char **text)
{
    free(*text);
    *text = NULL;
}

enum err file_open_read(const char *path, int *out_fd, struct err_info *info)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot open '%s'", path);
    }
    *out_fd = fd;
    return ERR_OK;
}

enum err
file_read_fd(int fd, const char *path, size_t max_bytes, struct strbuf *out, struct err_info *info)
{
    size_t start = out->len;
    for (;;) {
        if (!strbuf_reserve(out, READ_ROOM_BYTES)) {
            return err_set(info, ERR_NO_MEMORY, "no memory to read '%s'", path);
        }
        ssize_t got = read(fd, out->data + out->len, out->cap - out->len - 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_set_errno(info, errno, "cannot read '%s'", path);
        }
        if (got == 0) {
            return ERR_OK;
        }
        if ((size_t)got > max_bytes - (out->len - start)) {
            strbuf_truncate(out, start);
            return err_set(info, ERR_LIMIT, "'%s' has more than %zu bytes", path, max_bytes);
        }
        out->len += (size_t)got;
        out->data[out->len] = 0;
    }
}

enum err file_read(const char *path, size_t max_bytes, struct strbuf *out, struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    TRY(file_open_read(path, &fd, info));
    return file_read_fd(fd, path, max_bytes, out, info);
}

enum err file_make_parents(const char *path, struct err_info *info)
{
    CLEANUP(text_freep) char *parent = strdup(path);
    if (parent == NULL) {
        return ERR_NO_MEMORY;
    }
    for (char *slash = strchr(parent + (*parent == '/'), '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        // EEXIST may come from a file; then opening the path fails later. An existing parent on
        // some file systems gives EROFS or EACCES first.
        struct stat status;
        const int problem = mkdir(parent, 0777) != 0 ? errno : 0;
        if (problem != 0 && problem != EEXIST && stat(parent, &status) != 0) {
            return err_set_errno(info, problem, "cannot create the directory '%s'", parent);
        }
        *slash = '/';
    }
    return ERR_OK;
}

enum err file_absolute_path(const char *path, struct strbuf *out, struct err_info *info)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    CLEANUP(strbuf_release) struct strbuf directory = {0};
    strbuf_append_text(&directory, slash == path ? "/" : slash == NULL ? "." : "");
    strbuf_append(&directory, path, slash != NULL ? (size_t)(slash - path) : 0);
    TRY(strbuf_result(&directory));
    CLEANUP(text_freep) char *resolved = realpath(strbuf_text(&directory), NULL);
    if (resolved == NULL) {
        return err_set_errno(info, errno, "cannot find the directory '%s'",
                             strbuf_text(&directory));
    }
    strbuf_printf(out, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, name);
    return strbuf_result(out);
}

bool file_append_user_folder(struct strbuf *out, const char *variable, const char *below_home)
{
    const char *base = getenv(variable);
    const char *home = getenv("HOME");
    if (base != NULL && base[0] == '/') {
        strbuf_printf(out, "%s/cairn", base);
        return true;
    }
    if (home != NULL && home[0] == '/') {
        strbuf_printf(out, "%s/%s/cairn", home, below_home);
        return true;
    }
    return false;
}

bool file_is_same(const char *one, const char *other)
{
    struct stat a;
    struct stat b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

bool file_is_in_path(const char *program)
{
    const char *path = getenv("PATH");
    path = path != NULL ? path : "/usr/bin:/bin";
    while (*path != '\0') {
        size_t len = strcspn(path, ":");
        CLEANUP(strbuf_release) struct strbuf candidate = {0};
        strbuf_append(&candidate, path, len);
        strbuf_append_char(&candidate, '/');
        strbuf_append_text(&candidate, program);
        if (access(strbuf_text(&candidate), X_OK) == 0) {
            return true;
        }
        path += len + (path[len] == ':');
    }
    return false;
}

enum err file_write_all(int fd, struct bytes data, const char *path, struct err_info *info)
{
    while (data.len > 0) {
        ssize_t written = write(fd, data.data, data.len);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return err_set_errno(info, errno, "cannot write '%s'", path);
        }
        data.data += written;
        data.len -= (size_t)written;
    }
    return ERR_OK;
}

const char *path_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

uint64_t file_identity(const struct stat *status)
{
    const uint64_t parts[] = {status->st_dev, status->st_ino, (uint64_t)status->st_size,
                              (uint64_t)status->st_mtim.tv_sec, (uint64_t)status->st_mtim.tv_nsec};
    uint64_t identity = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        identity = hash_mix(identity ^ parts[i]);
    }
    return identity;
}
