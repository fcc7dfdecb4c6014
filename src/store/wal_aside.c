// SPDX-License-Identifier: MIT
// wal_aside: see wal_aside.h.
#include "store/wal_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/strbuf.h"

enum {
    SPARE_BYTES = 1 << 20,
    COPY_STEP_BYTES = 16 * 1024,
    LINK_MAX_BYTES = 512, // longer ones are not ours
};

static const char folder_name[] = "/cairn-store.XXXXXX";
static const char log_name[] = "/wal";

struct wal_aside {
    sqlite3_vfs vfs;    // first: SQLite passes its address
    sqlite3_vfs *usual; // borrowed
    char name[48];
    char place[LINK_MAX_BYTES];   // of the log, while it is aside; SQLite keeps the address
    char refused[LINK_MAX_BYTES]; // where a link leads that was not followed; empty: none
    bool moves;
    bool has_no_room;
};

// --- links -------------------------------------------------------------------------------------

// The folder of a log that is aside.
static void get_folder(const char *place, char out[LINK_MAX_BYTES])
{
    (void)snprintf(out, LINK_MAX_BYTES, "%s", place); // as long as the former
    char *slash = strrchr(out, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
}

// Read where a link in the place of the log leads; empty: there is none. Return whether the log is
// there: this user made the link, to a private folder of his own. The reason of an earlier failure
// stays in errno, where SQLite asks for it late.
static bool find_place(const char *link, char out[LINK_MAX_BYTES])
{
    struct stat status;
    char folder[LINK_MAX_BYTES];
    const int problem = errno;
    const ssize_t len = readlink(link, out, LINK_MAX_BYTES - 1);
    errno = problem;
    out[len > 0 ? len : 0] = '\0';
    if (out[0] != '/' || lstat(link, &status) != 0 || status.st_uid != geteuid()) {
        return false;
    }
    const char *name = strrchr(out, '/');
    get_folder(out, folder);
    return strcmp(name, log_name) == 0 && lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

static bool sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof(folder), "%.*s/", slash != NULL ? (int)(slash - path) : 0, path);
    CLEANUP(fd_closep) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && (fsync(fd) == 0 || errno == EINVAL); // EINVAL: it has nothing to sync
}

// --- the move ----------------------------------------------------------------------------------

// Which file system a log is on, and how many bytes it may take elsewhere: what it has already, and
// each page of the store.
static bool examine(const char *log, dev_t *out_device, uint64_t *out_bytes)
{
    struct stat store;
    struct stat status;
    char path[PATH_MAX];
    const size_t len = strlen(log);
    const size_t suffix = strlen("-wal");
    (void)snprintf(path, sizeof(path), "%.*s", len > suffix ? (int)(len - suffix) : 0, log);
    if (stat(path, &store) != 0) {
        return false;
    }
    const bool has_log = lstat(log, &status) == 0;
    *out_device = store.st_dev;
    *out_bytes = SPARE_BYTES + (uint64_t)store.st_size + (has_log ? (uint64_t)status.st_size : 0);
    return true;
}

static bool has_room(const char *folder, dev_t store, uint64_t bytes)
{
    struct stat status;
    struct statvfs disk;
    return folder != NULL && folder[0] == '/' && stat(folder, &status) == 0 &&
           status.st_dev != store && statvfs(folder, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize >= bytes;
}

// Make the private folder on another file system than the log's. Disks come first: they keep the
// log if the power fails.
static bool make_folder(const char *log, char out[LINK_MAX_BYTES])
{
    const char *const places[] = {getenv("TMPDIR"), "/var/tmp", "/tmp", "/dev/shm"};
    dev_t device;
    uint64_t bytes;
    if (!examine(log, &device, &bytes)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (has_room(places[i], device, bytes) &&
            strlen(places[i]) + sizeof(folder_name) + sizeof(log_name) < LINK_MAX_BYTES) {
            (void)snprintf(out, LINK_MAX_BYTES, "%s%s", places[i], folder_name); // fits
            if (mkdtemp(out) != NULL) {
                return true;
            }
        }
    }
    return false;
}

// Copy what the log has, if there is one, to a new file, and see to it that it is on the disk.
static bool copy_log(const char *log, const char *place)
{
    char buffer[COPY_STEP_BYTES];
    struct err_info ignored = {0};
    CLEANUP(fd_closep) int from = open(log, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0 && errno != ENOENT) {
        return false;
    }
    CLEANUP(fd_closep) int to = open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0) {
        return false;
    }
    ssize_t len = 0;
    while (from >= 0 && (len = read(from, buffer, sizeof(buffer))) > 0) {
        if (file_write_all(to, (struct bytes){(const uint8_t *)buffer, (size_t)len}, place,
                           &ignored) != ERR_OK) {
            return false;
        }
    }
    return len == 0 && fsync(to) == 0 && sync_folder_of(place);
}

// Put a link in the place of the log, at once: there is always the one or the other.
static bool put_link(const char *log, const char *place)
{
    char fresh[PATH_MAX];
    if (snprintf(fresh, sizeof(fresh), "%s-new", log) >= (int)sizeof(fresh)) {
        return false;
    }
    (void)unlink(fresh); // of a cairn that was killed here
    if (symlink(place, fresh) != 0) {
        return false;
    }
    if (rename(fresh, log) != 0) {
        (void)unlink(fresh); // as far as possible
        return false;
    }
    return sync_folder_of(log);
}

static void remove_place(const char *place)
{
    char folder[LINK_MAX_BYTES];
    get_folder(place, folder);
    (void)unlink(place); // what is left is in a folder of temporary files
    (void)rmdir(folder);
}

static bool move_log(struct wal_aside *aside, const char *log)
{
    char folder[LINK_MAX_BYTES];
    if (!make_folder(log, folder)) {
        return false;
    }
    (void)snprintf(aside->place, sizeof(aside->place), "%.*s%s", // fits: make_folder
                   (int)(sizeof(aside->place) - sizeof(log_name)), folder, log_name);
    if (copy_log(log, aside->place) && put_link(log, aside->place)) {
        return true;
    }
    char read_back[LINK_MAX_BYTES];
    if (!find_place(log, read_back)) { // else the link is there, and only its sync has failed
        remove_place(aside->place);
    }
    return false;
}

// --- SQLite's table ----------------------------------------------------------------------------

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    struct wal_aside *aside = (struct wal_aside *)vfs;
    if (name == NULL || (flags & SQLITE_OPEN_WAL) == 0) {
        return aside->usual->xOpen(aside->usual, name, file, flags, out);
    }
    char target[LINK_MAX_BYTES];
    bool is_aside = find_place(name, target);
    (void)snprintf(aside->refused, sizeof(aside->refused), "%s", is_aside ? "" : target);
    if (is_aside) {
        (void)snprintf(aside->place, sizeof(aside->place), "%s", target);
    } else if (aside->moves) {
        is_aside = move_log(aside, name);
        aside->has_no_room = !is_aside;
        if (!is_aside) {
            file->pMethods = NULL; // nothing to close
            return SQLITE_FULL;
        }
    }
    if (!is_aside) {
        return aside->usual->xOpen(aside->usual, name, file, flags, out);
    }
    // As a log, SQLite would look for the store beside it.
    const int kinds = SQLITE_OPEN_WAL | SQLITE_OPEN_URI;
    return aside->usual->xOpen(aside->usual, aside->place, file,
                               (flags & ~kinds) | SQLITE_OPEN_SUPER_JOURNAL, out);
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int is_synced)
{
    struct wal_aside *aside = (struct wal_aside *)vfs;
    char place[LINK_MAX_BYTES];
    const bool is_aside = find_place(name, place);
    const int status = aside->usual->xDelete(aside->usual, name, is_synced);
    if (is_aside && status == SQLITE_OK) {
        remove_place(place);
    }
    return status;
}

enum err wal_aside_new(struct wal_aside **out, struct err_info *info)
{
    sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
    struct wal_aside *aside = calloc(1, sizeof(*aside));
    if (aside == NULL) {
        return ERR_NO_MEMORY;
    }
    if (usual == NULL) { // a SQLite without files
        free(aside);
        return err_set(info, ERR_UNSUPPORTED, "SQLite has no file system");
    }
    aside->vfs = *usual;
    aside->usual = usual;
    (void)snprintf(aside->name, sizeof(aside->name), "cairn-%p", (void *)aside); // fits
    aside->vfs.zName = aside->name;
    aside->vfs.pNext = NULL;
    aside->vfs.xOpen = open_file;
    aside->vfs.xDelete = delete_file;
    if (sqlite3_vfs_register(&aside->vfs, 0) != SQLITE_OK) {
        free(aside);
        return ERR_NO_MEMORY;
    }
    *out = aside;
    return ERR_OK;
}

void wal_aside_free(struct wal_aside *aside)
{
    if (aside != NULL) {
        (void)sqlite3_vfs_unregister(&aside->vfs); // it is registered
        free(aside);
    }
}

const char *wal_aside_name(const struct wal_aside *aside)
{
    return aside->name;
}

void wal_aside_move(struct wal_aside *aside)
{
    aside->moves = true;
}

const char *wal_aside_refused(const struct wal_aside *aside)
{
    return aside->refused[0] != '\0' ? aside->refused : NULL;
}

bool wal_aside_has_no_room(const struct wal_aside *aside)
{
    return aside->has_no_room;
}
