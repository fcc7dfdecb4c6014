// SPDX-License-Identifier: MIT
#include "symbols/name_cache.h"

#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/order.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "host/text/number.h"

static const char suffix[] = ".names";
static const char limit_name[] = "limit";

enum {
    BUILD_ID_BYTES_MIN = 8, // shorter ones are made by hand
    BUILD_ID_BYTES_MAX = 64,
    LIMIT_TEXT_BYTES = 32,
    TOUCH_AFTER_S = 60, // a file used within this time counts as young
};

// Identify this build of cairn. A rebuilt executable has another size or time. libdw is part of the
// identity, because it reads the debug information.
static void find_reader(char *out, size_t size)
{
    struct stat status = {0};
    (void)stat("/proc/self/exe", &status); // without /proc all builds count as one
    (void)snprintf(out, size, "%" PRIu64 "-%" PRIu64 ".%09ld-%.16s", (uint64_t)status.st_size,
                   (uint64_t)status.st_mtim.tv_sec, status.st_mtim.tv_nsec, dwfl_version(NULL));
}

enum err name_cache_init(struct name_cache *cache)
{
    *cache = (struct name_cache){0};
    (void)file_append_user_folder(&cache->folder, "XDG_CACHE_HOME", ".cache"); // else no cache
    find_reader(cache->reader, sizeof(cache->reader));
    return strbuf_result(&cache->folder);
}

void name_cache_release(struct name_cache *cache)
{
    strbuf_release(&cache->folder);
}

struct cache_key cache_key_of_build_id(struct bytes build_id)
{
    struct cache_key key = {0};
    if (build_id.len < BUILD_ID_BYTES_MIN || build_id.len > BUILD_ID_BYTES_MAX) {
        return key;
    }
    for (size_t i = 0; i < build_id.len; i++) {
        (void)snprintf(key.name + 2 * i, 3, "%02x", build_id.data[i]);
    }
    memcpy(key.name + 2 * build_id.len, suffix, sizeof(suffix));
    return key;
}

// A text rather than a hash: the owner of a file can choose many of these numbers.
struct cache_key cache_key_of_file(const char *path, const struct stat *status)
{
    struct cache_key key = {0};
    (void)snprintf(key.name, sizeof(key.name), "file-%016" PRIx64 "%s",
                   (uint64_t)XXH3_64bits(path, strlen(path)), suffix); // fits
    (void)snprintf(key.identity, sizeof(key.identity),
                   "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 ".%lx-%" PRIx64 ".%lx-%" PRIx32,
                   (uint64_t)status->st_dev, (uint64_t)status->st_ino, (uint64_t)status->st_size,
                   (uint64_t)status->st_mtim.tv_sec, status->st_mtim.tv_nsec,
                   (uint64_t)status->st_ctim.tv_sec, status->st_ctim.tv_nsec,
                   (uint32_t)status->st_uid); // fits
    return key;
}

bool cache_key_is_same(const struct cache_key *one, const struct cache_key *other)
{
    return strcmp(one->name, other->name) == 0 && strcmp(one->identity, other->identity) == 0;
}

// Open the folder. Return -1 with errno if there is none, or if other users may write to it.
static int open_folder(const struct name_cache *cache)
{
    if (cache->folder.len == 0) {
        errno = ENOENT;
        return -1;
    }
    struct stat status;
    CLEANUP(fd_closep)
    int fd = open(strbuf_text(&cache->folder), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        return -1;
    }
    if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        errno = EPERM;
        return -1;
    }
    int ours = fd;
    fd = -1;
    return ours;
}

// Create the missing parts of the folder and open it. Nothing is created for another user: one who
// became root with his own HOME would find root's files there.
static int make_folder(const struct name_cache *cache)
{
    int fd = open_folder(cache);
    if (fd >= 0 || errno != ENOENT || cache->folder.len == 0) {
        return fd;
    }
    CLEANUP(text_freep) char *base = strdup(strbuf_text(&cache->folder));
    if (base == NULL) {
        return -1;
    }
    *strrchr(base, '/') = '\0';
    struct stat status;
    if (stat(base, &status) != 0 && (errno != ENOENT || mkdir(base, 0700) != 0)) {
        return -1;
    }
    if (stat(base, &status) != 0 || (geteuid() == 0 && status.st_uid != 0)) {
        errno = EPERM;
        return -1;
    }
    // Another process may create it at the same time.
    if (mkdir(strbuf_text(&cache->folder), 0700) != 0 && errno != EEXIST) {
        return -1;
    }
    return open_folder(cache);
}

// Open a file in the folder that the user owns, and return its status with size and time of use.
static int open_file(int folder, const char *name, struct stat *status)
{
    CLEANUP(fd_closep)
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, status) != 0) {
        return -1;
    }
    if (!S_ISREG(status->st_mode) || status->st_uid != geteuid()) {
        errno = EPERM;
        return -1;
    }
    int ours = fd;
    fd = -1;
    return ours;
}

void cache_entry_release(struct cache_entry *entry)
{
    strbuf_release(&entry->bytes);
    *entry = (struct cache_entry){0};
}

// Read the file's own identity: the cairn build that looked up the names, and the module.
static void
append_reader(const struct name_cache *cache, const struct cache_key *key, struct strbuf *out)
{
    strbuf_printf(out, "%s %s %s", cache->reader, key->name, key->identity);
}

static void touch_file(int fd, const struct stat *status)
{
    if (status->st_mtim.tv_sec + TOUCH_AFTER_S < time(NULL)) {
        (void)futimens(fd, NULL); // on failure it counts as older than it is
    }
}

static enum err read_entry(const struct name_cache *cache,
                           const char *name,
                           const char *reader,
                           bool is_used,
                           struct cache_entry *out)
{
    *out = (struct cache_entry){0};
    struct stat status;
    CLEANUP(fd_closep) int folder = open_folder(cache);
    CLEANUP(fd_closep) int fd = folder >= 0 ? open_file(folder, name, &status) : -1;
    if (fd < 0) {
        return ERR_OK;
    }
    CLEANUP(cache_entry_release) struct cache_entry entry = {0};
    enum err problem = file_read_fd(fd, name, CACHED_BYTES_MAX, &entry.bytes, NULL);
    if (problem == ERR_OK) {
        problem = cached_names_parse(strbuf_bytes(&entry.bytes), &entry.names);
    }
    if (problem == ERR_NO_MEMORY) {
        return problem;
    }
    if (problem != ERR_OK || strncmp(entry.names.reader, reader, strlen(reader)) != 0) {
        return ERR_OK;
    }
    if (is_used) {
        touch_file(fd, &status);
    }
    entry.is_found = true;
    *out = TAKE(entry);
    return ERR_OK;
}

enum err name_cache_read(const struct name_cache *cache,
                         const struct cache_key *key,
                         struct cache_entry *out)
{
    *out = (struct cache_entry){0};
    if (key->name[0] == '\0') {
        return ERR_OK;
    }
    CLEANUP(strbuf_release) struct strbuf reader = {0};
    append_reader(cache, key, &reader);
    TRY(strbuf_result(&reader));
    TRY(read_entry(cache, key->name, strbuf_text(&reader), true, out));
    if (out->is_found && strcmp(out->names.reader, strbuf_text(&reader)) != 0) {
        cache_entry_release(out);
    }
    return ERR_OK;
}

enum err
name_cache_read_file(const struct name_cache *cache, const char *name, struct cache_entry *out)
{
    return read_entry(cache, name, cache->reader, false, out);
}

static MUST_USE enum err
append_path(const struct name_cache *cache, const char *name, struct strbuf *out)
{
    strbuf_printf(out, "%s/%s", strbuf_text(&cache->folder), name);
    return strbuf_result(out);
}

// Replace a file of the folder.
static MUST_USE enum err replace_file(const struct name_cache *cache,
                                      const char *name,
                                      struct bytes data,
                                      struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};
    CLEANUP(fd_closep) int folder = make_folder(cache);
    if (folder < 0) {
        return err_set_errno(info, errno, "cannot use the directory '%s'",
                             strbuf_text(&cache->folder));
    }
    TRY(append_path(cache, name, &path));
    return file_replace(strbuf_text(&path), data, info);
}

enum err name_cache_write(const struct name_cache *cache,
                          const struct cache_key *key,
                          const char *module,
                          const char *source,
                          struct fresh_names *fresh,
                          const struct string_table *strings,
                          struct err_info *info)
{
    const uint64_t limit_bytes = name_cache_limit(cache);
    if (key->name[0] == '\0' || cache->folder.len == 0 || limit_bytes == 0) {
        return ERR_OK;
    }
    CLEANUP(cache_entry_release) struct cache_entry old = {0};
    CLEANUP(strbuf_release) struct strbuf file = {0};
    CLEANUP(strbuf_release) struct strbuf reader = {0};
    append_reader(cache, key, &reader);
    TRY(strbuf_result(&reader));
    TRY(name_cache_read(cache, key, &old));
    const struct cached_names_labels labels = {
        .reader = strbuf_text(&reader), .module = module, .source = source};
    TRY(cached_names_write(old.is_found ? &old.names : NULL, fresh, strings, &labels, &file));
    TRY(replace_file(cache, key->name, strbuf_bytes(&file), info));
    return name_cache_trim(cache, limit_bytes, NULL, info);
}

static int compare_ages(const void *left, const void *right)
{
    const struct cache_file *a = left;
    const struct cache_file *b = right;
    return order_u64(b->used_ns, a->used_ns) ?: strcmp(a->name, b->name);
}

static MUST_USE enum err list_folder(int folder, DIR *entries, struct cache_file_vec *out)
{
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        struct stat status;
        const size_t len = strlen(entry->d_name);
        if (strcmp(entry->d_name, limit_name) == 0 || len >= CACHE_NAME_BYTES ||
            fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode)) {
            continue;
        }
        struct cache_file file = {.bytes = (uint64_t)status.st_size,
                                  .used_ns = (int64_t)status.st_mtim.tv_sec * (int64_t)NS_PER_S +
                                             status.st_mtim.tv_nsec};
        memcpy(file.name, entry->d_name, len + 1);
        TRY(cache_file_vec_push(out, file));
    }
    return ERR_OK;
}

enum err
name_cache_list(const struct name_cache *cache, struct cache_file_vec *out, struct err_info *info)
{
    CLEANUP(cache_file_vec_release) struct cache_file_vec files = {0};
    CLEANUP(fd_closep) int folder = open_folder(cache);
    if (folder < 0 && errno == ENOENT) {
        *out = (struct cache_file_vec){0};
        return ERR_OK;
    }
    DIR *entries = folder >= 0 ? fdopendir(folder) : NULL;
    if (entries == NULL) {
        return err_set_errno(info, errno, "cannot read the directory '%s'",
                             strbuf_text(&cache->folder));
    }
    const enum err problem = list_folder(folder, entries, &files);
    folder = -1;
    (void)closedir(entries); // it was only read
    TRY(problem == ERR_OK ? ERR_OK : err_set(info, problem, "no memory"));
    cache_file_vec_sort(&files, compare_ages);
    *out = TAKE(files);
    return ERR_OK;
}

enum err name_cache_trim(const struct name_cache *cache,
                         uint64_t limit_bytes,
                         size_t *out_count,
                         struct err_info *info)
{
    CLEANUP(cache_file_vec_release) struct cache_file_vec files = {0};
    TRY(name_cache_list(cache, &files, info));
    CLEANUP(fd_closep) int folder = open_folder(cache);
    uint64_t total_bytes = 0;
    size_t count = 0;
    for (size_t i = 0; i < files.len; i++) {
        total_bytes += files.items[i].bytes;
        if (total_bytes <= limit_bytes && limit_bytes > 0) {
            continue;
        }
        total_bytes -= files.items[i].bytes;
        if (unlinkat(folder, files.items[i].name, 0) != 0 && errno != ENOENT) {
            return err_set_errno(info, errno, "cannot remove '%s/%s'", strbuf_text(&cache->folder),
                                 files.items[i].name);
        }
        count++;
    }
    if (out_count != NULL) {
        *out_count = count;
    }
    return ERR_OK;
}

uint64_t name_cache_limit(const struct name_cache *cache)
{
    struct stat status;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(fd_closep) int folder = open_folder(cache);
    CLEANUP(fd_closep) int fd = folder >= 0 ? open_file(folder, limit_name, &status) : -1;
    if (fd < 0 || file_read_fd(fd, limit_name, LIMIT_TEXT_BYTES, &text, NULL) != ERR_OK) {
        return NAME_CACHE_LIMIT_DEFAULT;
    }
    const char *at = strbuf_text(&text);
    uint64_t bytes;
    return number_take(&at, 10, &bytes) && strcmp(at, "\n") == 0 ? bytes : NAME_CACHE_LIMIT_DEFAULT;
}

enum err name_cache_set_limit(const struct name_cache *cache, uint64_t bytes, struct err_info *info)
{
    char text[LIMIT_TEXT_BYTES];
    const int len = snprintf(text, sizeof(text), "%" PRIu64 "\n", bytes);
    const struct bytes data = {.data = (const uint8_t *)text, .len = (size_t)len};
    if (cache->folder.len == 0) {
        return err_set(info, ERR_NOT_FOUND, "there is no directory for it: HOME is not set");
    }
    TRY(replace_file(cache, limit_name, data, info));
    return name_cache_trim(cache, bytes, NULL, info);
}
