// SPDX-License-Identifier: MIT
#include "host/os/new_file.h"

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    MAX_NAME_ATTEMPTS = 100,
    MAX_LINKS = 40, // the kernel's limit
};

// The path of an open descriptor under /proc/self/fd.
struct descriptor_path {
    char text[40];
};

static struct descriptor_path path_of_descriptor(int fd)
{
    struct descriptor_path path;
    (void)snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", fd); // fits
    return path;
}

// Create a file with a new name if `fd` is -1, and return its descriptor. Otherwise give that name
// to the nameless open file. Return -1 with errno on failure.
static int create_or_name(int fd, const char *name, mode_t mode)
{
    if (fd < 0) {
        return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, mode);
    }
    const struct descriptor_path path = path_of_descriptor(fd);
    return linkat(AT_FDCWD, path.text, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 ? fd : -1;
}

// Give *fd an unused name beside `path`. If *fd is -1, create a file there. The caller frees
// *out_name. open() rather than mkstemp(), so that the mode follows the umask as for any other
// file.
static MUST_USE enum err
name_beside(const char *path, mode_t mode, char **out_name, int *fd, struct err_info *info)
{
    for (unsigned attempt = 0;; attempt++) {
        CLEANUP(text_freep) char *name = NULL;
        if (asprintf(&name, "%s.%ld-%u.tmp", path, (long)getpid(), attempt) < 0) {
            name = NULL;
            return ERR_NO_MEMORY;
        }
        const int made = create_or_name(*fd, name, mode);
        if (made < 0 && errno == EEXIST && attempt < MAX_NAME_ATTEMPTS) {
            continue;
        }
        if (made < 0) {
            return err_set_errno(info, errno, "cannot create '%s'", path);
        }
        *out_name = TAKE(name);
        *fd = made;
        return ERR_OK;
    }
}

// Open a nameless file in the folder of `path`; if the process is killed, the file vanishes. Return
// -1 if the file system has no such files, or if there is no way to name the file later.
static int open_nameless(const char *path, mode_t mode)
{
    CLEANUP(text_freep) char *copy = strdup(path);
    if (copy == NULL) {
        return -1;
    }
    int fd = open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (fd >= 0 && access(path_of_descriptor(fd).text, F_OK) != 0) {
        fd_closep(&fd);
    }
    return fd;
}

// Return whether a file exists at `path` that renaming must not replace.
static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// Return whether the link at `path` is one of /proc/PID/fd, whose text is not where it leads.
static bool is_descriptor(const char *path)
{
    CLEANUP(text_freep) char *copy = strdup(path);
    struct stat status;
    struct statfs system;
    return copy != NULL && lstat(path, &status) == 0 && S_ISLNK(status.st_mode) &&
           statfs(dirname(copy), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// Return whether what is at `path` may be a trap. The kernel makes the same check with
// fs.protected_symlinks and fs.protected_fifos, for every directory that is writable for all users.
static bool is_a_strangers(const struct stat *status, const char *path)
{
    CLEANUP(text_freep) char *copy = strdup(path);
    struct stat directory;
    if (copy == NULL || stat(dirname(copy), &directory) != 0) {
        return true;
    }
    return (directory.st_mode & S_IWOTH) != 0 && status->st_uid != geteuid() &&
           status->st_uid != directory.st_uid;
}

static MUST_USE enum err refuse(const struct stat *status, const char *path, struct err_info *info)
{
    return err_set(info, ERR_PERMISSION, "'%s' is a %s that another user has put there", path,
                   S_ISREG(status->st_mode)    ? "file"
                   : S_ISLNK(status->st_mode)  ? "symbolic link"
                   : S_ISFIFO(status->st_mode) ? "pipe"
                   : S_ISDIR(status->st_mode)  ? "directory"
                                               : "special file");
}

enum err file_refuse_planted(const char *path, struct err_info *info)
{
    struct stat status;
    if (lstat(path, &status) != 0 || S_ISREG(status.st_mode) || !is_a_strangers(&status, path)) {
        return ERR_OK;
    }
    return refuse(&status, path, info);
}

// Return the target of the link at `path`, relative to the current directory. The caller frees it.
// NULL with errno.
static char *read_link(const char *path)
{
    char target[PATH_MAX];
    ssize_t len = readlink(path, target, sizeof(target) - 1);
    if (len < 0) {
        return NULL;
    }
    target[len] = '\0';
    const char *slash = strrchr(path, '/');
    size_t directory_len = target[0] == '/' || slash == NULL ? 0 : (size_t)(slash - path) + 1;
    char *joined = NULL;
    return asprintf(&joined, "%.*s%s", (int)directory_len, path, target) >= 0 ? joined : NULL;
}

enum err file_find_target(const char *path, char **out, struct err_info *info)
{
    CLEANUP(text_freep) char *at = strdup(path);
    struct stat status;
    for (int links = 0; at != NULL && lstat(at, &status) == 0 && S_ISLNK(status.st_mode); links++) {
        if (is_descriptor(at)) {
            break;
        }
        TRY(file_refuse_planted(at, info));
        CLEANUP(text_freep) char *next = links < MAX_LINKS ? read_link(at) : NULL;
        if (next == NULL) {
            return err_set_errno(info, links < MAX_LINKS ? errno : ELOOP, "cannot follow '%s'",
                                 path);
        }
        free(at);
        at = TAKE(next);
    }
    if (at == NULL) {
        return ERR_NO_MEMORY;
    }
    *out = TAKE(at);
    return ERR_OK;
}

// Read a user id or group id from sudo's environment. Return false if there is none.
static bool id_of_caller(const char *variable, uint32_t *out)
{
    const char *text = getenv(variable);
    uint64_t id;
    if (text == NULL || !number_parse(text, UINT32_MAX - 1, &id)) {
        return false;
    }
    *out = (uint32_t)id;
    return true;
}

// Return whether the file may be a stranger's, and not of the user who calls sudo.
static bool is_not_ours(const struct stat *status, const char *path)
{
    uint32_t user;
    const bool is_callers =
        geteuid() == 0 && id_of_caller("SUDO_UID", &user) && status->st_uid == user;
    return !is_callers && is_a_strangers(status, path);
}

enum err file_refuse_strangers(const char *path, struct err_info *info)
{
    struct stat status;
    return lstat(path, &status) == 0 && is_not_ours(&status, path) ? refuse(&status, path, info)
                                                                   : ERR_OK;
}

enum err
file_read_trusted(const char *path, size_t max_bytes, struct strbuf *out, struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    TRY(file_refuse_strangers(path, info)); // a pipe may be never written
    TRY(file_open_read(path, &fd, info));
    TRY(file_refuse_strangers(path, info)); // it may have come between
    return file_read_fd(fd, path, max_bytes, out, info);
}

// Give a new file to the caller of sudo. Without sudo do nothing.
static void give_to_caller(int fd)
{
    uint32_t user;
    uint32_t group;
    if (geteuid() == 0 && id_of_caller("SUDO_UID", &user) && id_of_caller("SUDO_GID", &group)) {
        (void)!fchown(fd, user, group); // on failure the file stays root's, who can read it
    }
}

// Set the permissions regardless of the umask, and the owner.
static void set_access(int fd, mode_t mode)
{
    if (mode != FILE_MODE_BY_UMASK) {
        (void)fchmod(fd, mode); // open() gave at most these
    }
    give_to_caller(fd);
}

// Open what is written to as it is. An own descriptor is doubled: the output follows what was
// written through it, and what its other users write next follows the output.
static MUST_USE enum err open_special(const char *path, int *out_fd, struct err_info *info)
{
    uint64_t number;
    struct stat own;
    struct stat status;
    const bool is_fd = is_descriptor(path);
    const bool is_own = is_fd && number_parse(path_file_name(path), INT_MAX, &number) &&
                        fstat((int)number, &own) == 0 && stat(path, &status) == 0 &&
                        own.st_dev == status.st_dev && own.st_ino == status.st_ino;
    TRY(file_refuse_planted(path, info)); // a pipe may be never read
    *out_fd =
        is_own ? fcntl((int)number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
               : open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | (is_fd ? 0 : O_NOFOLLOW));
    return *out_fd >= 0 ? ERR_OK : err_set_errno(info, errno, "cannot write '%s'", path);
}

static MUST_USE enum err begin(struct replacement *r,
                               const char *path,
                               mode_t mode,
                               bool may_be_special,
                               struct err_info *info)
{
    const mode_t created_mode = mode != FILE_MODE_BY_UMASK ? mode : 0666;
    CLEANUP(replacement_abandon) struct replacement fresh = {0};
    TRY(file_find_target(path, &fresh.path, info));
    if (fresh.path == NULL) {
        return ERR_NO_MEMORY; // impossible: err_set returns its argument, but an analyzer does not
                              // see that
    }
    CLEANUP(fd_closep) int fd = -1;
    bool is_kept = is_special(fresh.path) || is_descriptor(fresh.path);
    if (is_kept && !may_be_special) {
        TRY(file_refuse_planted(fresh.path, info));
        return err_set(info, ERR_INVALID, "cannot write '%s': it is no regular file", path);
    }
    if (is_kept) {
        TRY(open_special(fresh.path, &fd, info));
    } else {
        fresh.is_nameless = (fd = open_nameless(fresh.path, created_mode)) >= 0;
    }
    if (fd < 0) {
        TRY(name_beside(fresh.path, created_mode, &fresh.temporary, &fd, info));
    }
    if (!is_kept) {
        set_access(fd, mode);
    }
    fresh.stream = fdopen(fd, "w");
    if (fresh.stream == NULL) {
        return err_set_errno(info, errno, "cannot write '%s'", path);
    }
    fd = -1; // the stream owns it now
    *r = TAKE(fresh);
    return ERR_OK;
}

enum err
replacement_begin(struct replacement *r, const char *path, mode_t mode, struct err_info *info)
{
    return begin(r, path, mode, true, info);
}

enum err replacement_begin_regular(struct replacement *r,
                                   const char *path,
                                   mode_t mode,
                                   struct err_info *info)
{
    return begin(r, path, mode, false, info);
}

void replacement_abandon(struct replacement *r)
{
    stream_closep(&r->stream);
    if (r->temporary != NULL) {
        (void)unlink(r->temporary); // on failure the temporary file stays
    }
    text_freep(&r->temporary);
    text_freep(&r->path);
}

// An earlier failure leaves only the stream's error flag without its errno. Writing once more to a
// file that is given up sets errno to the reason. A full disk is by far the likeliest one.
static int reason_of_failure(int fd, bool is_regular)
{
    return is_regular && write(fd, "\n", 1) < 0 ? errno : ENOSPC;
}

enum err replacement_commit(struct replacement *r, bool durable, struct err_info *info)
{
    CLEANUP(replacement_abandon) struct replacement done = *r;
    *r = (struct replacement){0};
    bool is_regular = done.temporary != NULL || done.is_nameless;
    bool failed_before = ferror(done.stream) != 0;
    if (fflush(done.stream) != 0 || failed_before) {
        const int problem =
            failed_before ? reason_of_failure(fileno(done.stream), is_regular) : errno;
        return err_set_errno(info, problem, "cannot write '%s'", done.path);
    }
    if (durable && is_regular && fsync(fileno(done.stream)) != 0) {
        return err_set_errno(info, errno, "cannot write '%s' to the disk", done.path);
    }
    if (done.is_nameless) {
        int fd = fileno(done.stream);
        // If `path` is free, the file needs no temporary name, which could stay behind.
        if (create_or_name(fd, done.path, 0) >= 0) {
            is_regular = false;
        } else {
            TRY(name_beside(done.path, 0, &done.temporary, &fd, info));
        }
    }
    FILE *stream = TAKE(done.stream);
    if (fclose(stream) != 0) {
        return err_set_errno(info, errno, "cannot write '%s'", done.path);
    }
    if (is_regular && rename(done.temporary, done.path) != 0) {
        return err_set_errno(info, errno, "cannot replace '%s'", done.path);
    }
    text_freep(&done.temporary);
    return ERR_OK;
}

enum err file_replace(const char *path, struct bytes data, struct err_info *info)
{
    CLEANUP(replacement_abandon) struct replacement r = {0};
    TRY(replacement_begin_regular(&r, path, FILE_MODE_BY_UMASK, info));
    if (data.len > 0 && fwrite(data.data, 1, data.len, r.stream) != data.len) {
        return err_set_errno(info, errno, "cannot write '%s'", path);
    }
    return replacement_commit(&r, false, info);
}

enum err file_create(const char *path, mode_t mode, int *out_fd, struct err_info *info)
{
    CLEANUP(replacement_abandon) struct replacement r = {0};
    TRY(replacement_begin(&r, path, mode, info));
    CLEANUP(fd_closep) int fd = fcntl(fileno(r.stream), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot create '%s'", path);
    }
    if (r.temporary != NULL || r.is_nameless) {
        (void)fcntl(fd, F_SETFL, O_APPEND); // cannot fail; the flags of others' streams stay
    }
    TRY(replacement_commit(&r, false, info));
    *out_fd = fd;
    fd = -1;
    return ERR_OK;
}

enum err file_create_missing(const char *path, mode_t mode, struct err_info *info)
{
    CLEANUP(text_freep) char *target = NULL;
    const enum err found = file_find_target(path, &target, info);
    if (target == NULL) {
        return found;
    }
    TRY(file_refuse_planted(target, info));
    CLEANUP(fd_closep) int fd = create_or_name(-1, target, mode);
    if (fd < 0 && errno != EEXIST) {
        return err_set_errno(info, errno, "cannot create '%s'", path);
    }
    return ERR_OK;
}
