// SPDX-License-Identifier: MIT
#include "host/os/target_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/containers/vec.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"
#include "host/text/strbuf.h"

enum {
    STATUS_BYTES_MAX = 65536,
    LINKS_MAX = 40,    // the kernel's limit
    FOLDERS_MAX = 256, // of a path; each has a descriptor while it is walked
    ID_FIELDS = 4,     // proc(5): real, effective, saved, and of the file system
};

// Capabilities that pass by permissions, capabilities(7).
#define CAPS_THAT_READ ((UINT64_C(1) << 1) | (UINT64_C(1) << 2)) // DAC_OVERRIDE, DAC_READ_SEARCH

// On whose behalf files are opened.
struct reader {
    bool may_all; // the kernel's checks of cairn suffice
    uint32_t user;
    uint32_t group;
    struct u32_vec groups; // owned
};

static void reader_release(struct reader *reader)
{
    u32_vec_release(&reader->groups);
}

// Return the number of the i-th field after a name of /proc/PID/status.
static uint32_t field_of(const char *value, int field)
{
    uint64_t number = UINT32_MAX; // no user's
    for (int i = 0; value != NULL && i <= field; i++) {
        value += strspn(value, " \t");
        if (!number_take(&value, 10, &number)) {
            return UINT32_MAX;
        }
    }
    return (uint32_t)number;
}

static enum err find_reader(int pid, struct reader *out)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    char users[48];
    if (!proc_file_read(pid, "status", STATUS_BYTES_MAX, &text)) {
        return ERR_NOT_FOUND;
    }
    const char *status = strbuf_text(&text);
    out->user = field_of(proc_text_value(status, "Uid"), ID_FIELDS - 1);
    out->group = field_of(proc_text_value(status, "Gid"), ID_FIELDS - 1);
    (void)snprintf(users, sizeof(users), "/proc/%d/ns/user", pid); // fits
    // Capabilities in another namespace of users are for that one's files.
    if ((proc_text_mask(status, "CapEff") & CAPS_THAT_READ) != 0) {
        out->may_all = file_is_same("/proc/self/ns/user", users);
    }
    const char *groups = proc_text_value(status, "Groups");
    uint64_t group;
    while (groups != NULL && *(groups += strspn(groups, " \t")) != '\n' &&
           number_take(&groups, 10, &group)) {
        TRY(u32_vec_push(&out->groups, (uint32_t)group));
    }
    return ERR_OK;
}

static bool is_in_group(const struct reader *reader, uint32_t group)
{
    bool is_in = reader->group == group;
    for (size_t i = 0; i < reader->groups.len; i++) {
        is_in = is_in || reader->groups.items[i] == group;
    }
    return is_in;
}

// `bit`: S_IROTH or S_IXOTH.
static bool may_access(const struct reader *reader, const struct stat *status, mode_t bit)
{
    const unsigned shift = status->st_uid == reader->user        ? 6
                           : is_in_group(reader, status->st_gid) ? 3
                                                                 : 0;
    return reader->may_all || (status->st_mode & (bit << shift)) != 0;
}

DEFINE_VEC(descriptor_vec, int);

// The way to a file: the folders that have been entered, the root first, and what is left to walk.
struct walk {
    const struct reader *reader;
    struct descriptor_vec folders; // owned, and each of them
    struct strbuf rest;            // owned
    int links;
};

static void walk_release(struct walk *walk)
{
    for (size_t i = 0; i < walk->folders.len; i++) {
        fd_closep(walk->folders.items + i);
    }
    descriptor_vec_release(&walk->folders);
    strbuf_release(&walk->rest);
}

static enum err of_errno(int problem)
{
    return problem == EACCES || problem == EPERM    ? ERR_PERMISSION
           : problem == ENOMEM                      ? ERR_NO_MEMORY
           : problem == EMFILE || problem == ENFILE ? ERR_IO
                                                    : ERR_NOT_FOUND;
}

// Put the text of a link before what is left to walk.
static enum err follow_link(struct walk *walk, int link, const char *rest)
{
    char text[PATH_MAX];
    const ssize_t len = readlinkat(link, "", text, sizeof(text));
    if (len <= 0 || (size_t)len == sizeof(text) || walk->links++ >= LINKS_MAX) {
        return ERR_NOT_FOUND;
    }
    CLEANUP(strbuf_release) struct strbuf whole = {0};
    strbuf_append(&whole, text, (size_t)len);
    strbuf_append_char(&whole, '/');
    strbuf_append_text(&whole, rest);
    TRY(strbuf_result(&whole));
    while (text[0] == '/' && walk->folders.len > 1) {
        fd_closep(&walk->folders.items[--walk->folders.len]);
    }
    strbuf_release(&walk->rest);
    walk->rest = TAKE(whole);
    return ERR_OK;
}

// Take the next part of the path. Return false at its end.
static bool take_part(char **rest, char **part)
{
    *part = *rest + strspn(*rest, "/");
    const size_t len = strcspn(*part, "/");
    *rest = *part + len;
    if (**rest == '/') {
        *(*rest)++ = '\0';
    }
    return len > 0;
}

static enum err enter_folder(struct walk *walk, int folder, const struct stat *status)
{
    if (!may_access(walk->reader, status, S_IXOTH)) {
        return ERR_PERMISSION;
    }
    return walk->folders.len < FOLDERS_MAX ? descriptor_vec_push(&walk->folders, folder)
                                           : ERR_LIMIT;
}

// Walk to the end of the path. `*out`: a descriptor without access; -1: the last folder itself.
static enum err walk_on(struct walk *walk, int *out)
{
    char *part;
    for (char *rest = walk->rest.data; rest != NULL && take_part(&rest, &part);) {
        if (strcmp(part, ".") == 0) {
            continue;
        }
        if (strcmp(part, "..") == 0) {
            if (walk->folders.len > 1) {
                fd_closep(&walk->folders.items[--walk->folders.len]);
            }
            continue;
        }
        struct stat status;
        CLEANUP(fd_closep)
        int fd = openat(walk->folders.items[walk->folders.len - 1], part,
                        O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) != 0) {
            return of_errno(errno);
        }
        if (S_ISLNK(status.st_mode)) {
            TRY(follow_link(walk, fd, rest));
            rest = walk->rest.data;
        } else if (S_ISDIR(status.st_mode)) {
            TRY(enter_folder(walk, fd, &status));
            fd = -1;
        } else {
            *out = rest[strspn(rest, "/")] == '\0' ? fd : -1;
            fd = *out >= 0 ? -1 : fd;
            return *out >= 0 ? ERR_OK : ERR_NOT_FOUND;
        }
    }
    *out = -1;
    return ERR_OK;
}

// Find `path` below the folder `root`, which it takes over.
static enum err find_below(int root, const char *path, const struct reader *reader, int *out)
{
    CLEANUP(fd_closep) int start = root;
    CLEANUP(walk_release) struct walk walk = {.reader = reader};
    if (start < 0) {
        return of_errno(errno);
    }
    strbuf_append_text(&walk.rest, path);
    TRY(strbuf_result(&walk.rest));
    TRY(descriptor_vec_push(&walk.folders, start));
    start = -1;
    TRY(walk_on(&walk, out));
    if (*out < 0) {
        *out = walk.folders.items[walk.folders.len - 1];
        walk.folders.len--;
    }
    return ERR_OK;
}

static enum err find_file(int pid, const char *path, struct reader *reader, int *out)
{
    char root[32] = "/";
    reader->may_all = pid == 0;
    if (pid != 0) {
        (void)snprintf(root, sizeof(root), "/proc/%d/root", pid); // fits
        TRY(find_reader(pid, reader));
    }
    return find_below(open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), path, reader, out);
}

// Open what a descriptor without access stands for, which it takes over.
static enum err open_found(
    int found, const struct reader *reader, const char *path, int *out, struct err_info *info)
{
    CLEANUP(fd_closep) int fd = found;
    struct stat status;
    struct statfs system;
    char link[40];
    if (fstat(fd, &status) != 0) {
        return err_set_errno(info, errno, "cannot stat '%s'", path);
    }
    if (!S_ISREG(status.st_mode) || fstatfs(fd, &system) != 0 ||
        system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' is not a file", path);
    }
    if (!may_access(reader, &status, S_IROTH)) {
        return err_set(info, ERR_PERMISSION, "the process may not read '%s' itself", path);
    }
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); // fits
    // Without O_NONBLOCK a lease on the file would delay it.
    *out = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return *out >= 0 ? ERR_OK : err_set_errno(info, errno, "cannot open '%s'", path);
}

static enum err explain_refusal(enum err err, const char *path, struct err_info *info)
{
    return err == ERR_NO_MEMORY ? err
           : err == ERR_IO      ? err_set_errno(info, EMFILE, "cannot open '%s'", path)
                                : err_set(info, err, "cannot open '%s'%s", path,
                                     err == ERR_PERMISSION ? ": permission denied" : "");
}

enum err target_file_open(int pid, const char *path, int *out_fd, struct err_info *info)
{
    CLEANUP(reader_release) struct reader reader = {0};
    int found = -1;
    const enum err err = find_file(pid, path, &reader, &found);
    return err == ERR_OK ? open_found(found, &reader, path, out_fd, info)
                         : explain_refusal(err, path, info);
}

enum err target_file_open_named(const char *path, int *out_fd, struct err_info *info)
{
    const struct reader reader = {.may_all = true};
    const int found = open(path, O_PATH | O_CLOEXEC);
    return found >= 0 ? open_found(found, &reader, path, out_fd, info)
                      : err_set_errno(info, errno, "cannot open '%s'", path);
}

enum err
target_file_open_mapped(int pid, uint64_t start, uint64_t end, int *out_fd, struct err_info *info)
{
    char link[96];
    (void)snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start,
                   end); // fits
    return target_file_open_named(link, out_fd, info);
}

int target_file_open_folder(int pid, const char *path)
{
    CLEANUP(reader_release) struct reader reader = {0};
    int found = -1;
    return find_file(pid, path, &reader, &found) == ERR_OK ? found : -1;
}

enum err target_file_open_in(int folder, const char *name, int *out_fd, struct err_info *info)
{
    const struct reader reader = {.may_all = true};
    const int found = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return found >= 0 ? open_found(found, &reader, name, out_fd, info)
                      : err_set_errno(info, errno, "cannot open '%s'", name);
}

bool target_file_stat(int pid, const char *path, struct stat *out)
{
    CLEANUP(fd_closep) int found = target_file_open_folder(pid, path);
    return found >= 0 && fstat(found, out) == 0;
}

bool target_file_append_folder(int pid, struct strbuf *out)
{
    char link[32];
    char folder[PATH_MAX];
    (void)snprintf(link, sizeof(link), "/proc/%d/cwd", pid); // fits
    const ssize_t len = readlink(link, folder, sizeof(folder));
    if (len > 0) {
        strbuf_append(out, folder, (size_t)len);
    }
    return len > 0;
}

bool target_file_shares_root(int pid)
{
    char root[32];
    char mounts[32];
    (void)snprintf(root, sizeof(root), "/proc/%d/root", pid);       // fits
    (void)snprintf(mounts, sizeof(mounts), "/proc/%d/ns/mnt", pid); // fits
    return file_is_same("/", root) && file_is_same("/proc/self/ns/mnt", mounts);
}

bool target_file_is_trusted(const struct stat *status)
{
    return (status->st_uid == 0 || status->st_uid == geteuid()) &&
           (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}
