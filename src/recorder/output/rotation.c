// SPDX-License-Identifier: MIT
// rotation: see rotation.h.
//
// Times in names are UTC of a fixed width, and _ follows . in ASCII, so the order of the names is
// the order of the times.
#include "recorder/output/rotation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/containers/vec.h"
#include "host/os/file.h"

enum {
    STAMP_LEN = 16, // 20261123T161009Z
    SAME_SECOND_MAX = 99,
    BLOCK_BYTES = 512, // the unit of st_blocks
    PAUSE_SHARE = 16,  // a pause between two kept files counts at most this part of keep_ms
};

static const char suffix[] = ".cairn";

struct stamp {
    char text[STAMP_LEN + 1];
};

static struct stamp stamp_of(uint64_t unix_ns)
{
    const time_t seconds = (time_t)(unix_ns / NS_PER_S);
    struct stamp stamp = {""};
    struct tm utc;
    if (gmtime_r(&seconds, &utc) != NULL) {
        (void)strftime(stamp.text, sizeof(stamp.text), "%Y%m%dT%H%M%SZ", &utc); // fits until 9999
    }
    return stamp;
}

// Return the length of the path without ".cairn".
static size_t stem_len(const char *path)
{
    const size_t len = strlen(path);
    const size_t end = sizeof(suffix) - 1;
    return len > end && strcmp(path + len - end, suffix) == 0 ? len - end : len;
}

enum err rotation_init(struct rotation *rotation,
                       const struct rotation_options *options,
                       const char *path,
                       struct err_info *info)
{
    struct stat status;
    *rotation = (struct rotation){.options = *options, .path = path, .next_ms = options->every_ms};
    if (!rotation_is_wanted(options) || stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_nlink > 1) {
        return ERR_OK;
    }
    const enum err err = rotation_keep(rotation, (uint64_t)status.st_mtim.tv_sec * NS_PER_S, info);
    rotation->kept_bytes = 0; // this run begins with a small file
    return err;
}

void rotation_release(struct rotation *rotation)
{
    strbuf_release(&rotation->kept);
}

bool rotation_is_due(struct rotation *rotation, uint64_t ended, uint64_t now_ms)
{
    if (rotation->options.every_ms == 0 || now_ms < rotation->next_ms) {
        return false;
    }
    // After a pause of the machine one state is kept, not one for each interval.
    rotation->next_ms = now_ms + rotation->options.every_ms;
    return rotation->last_awaited <= ended;
}

void rotation_await(struct rotation *rotation, uint64_t number)
{
    rotation->first_awaited = rotation->first_awaited != 0 ? rotation->first_awaited : number;
    rotation->last_awaited = number;
}

bool rotation_is_awaited(const struct rotation *rotation, uint64_t ended)
{
    return rotation->first_awaited != 0 && rotation->first_awaited <= ended;
}

void rotation_settle(struct rotation *rotation, uint64_t ended)
{
    rotation->first_awaited = rotation->last_awaited > ended ? rotation->last_awaited : 0;
}

static uint64_t file_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

bool rotation_has_grown(const struct rotation *rotation)
{
    const uint64_t every = rotation->options.every_bytes;
    return every != 0 && file_bytes(rotation->path) >= rotation->kept_bytes + every;
}

// --- the bounds ---------------------------------------------------------------------------------

struct kept_file {
    char *name;      // owned
    uint64_t time_s; // of its name, since 1970
    uint64_t seen_s; // time from then to now, in which pauses count little
    uint64_t bytes;
};

DEFINE_VEC(kept_file_vec, struct kept_file);

static void release_files(struct kept_file_vec *files)
{
    for (size_t i = 0; i < files->len; i++) {
        free(files->items[i].name);
    }
    kept_file_vec_release(files);
}

static bool is_stamp(const char *text)
{
    static const char form[] = "00000000T000000Z";
    for (size_t i = 0; i < STAMP_LEN; i++) {
        const bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == '0' ? !is_digit : text[i] != form[i]) {
            return false;
        }
    }
    return true;
}

// Return the time in the name of a kept file of this recording; NULL for any other name.
static const char *stamp_in(const struct rotation *rotation, const char *name)
{
    const char *own = path_file_name(rotation->path);
    const size_t len = stem_len(own);
    if (strncmp(name, own, len) != 0 || name[len] != '.' || !is_stamp(name + len + 1)) {
        return NULL;
    }
    const char *rest = name + len + 1 + STAMP_LEN;
    if (rest[0] == '_') { // another one of the same second
        rest += 1 + strspn(rest + 1, "0123456789");
    }
    return strcmp(rest, own + len) == 0 ? name + len + 1 : NULL;
}

// Return the time of a stamp, in seconds since 1970; 0 for one of no calendar.
static uint64_t seconds_of(const char *stamp)
{
    struct tm utc = {0};
    const char *end = strptime(stamp, "%Y%m%dT%H%M%SZ", &utc);
    const time_t seconds = end == stamp + STAMP_LEN ? timegm(&utc) : 0;
    return seconds > 0 ? (uint64_t)seconds : 0;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct kept_file *)left)->name, ((const struct kept_file *)right)->name);
}

static MUST_USE enum err
list_kept(const struct rotation *rotation, DIR *folder, struct kept_file_vec *out)
{
    struct stat own = {0};
    struct stat status;
    (void)!stat(rotation->path, &own); // a missing one takes no space
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const char *stamp = stamp_in(rotation, entry->d_name);
        if (stamp == NULL ||
            fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode)) {
            continue;
        }
        const bool is_own = status.st_dev == own.st_dev && status.st_ino == own.st_ino;
        const struct kept_file file = {
            .name = strdup(entry->d_name),
            .time_s = seconds_of(stamp),
            .bytes = is_own ? 0 : (uint64_t)status.st_blocks * BLOCK_BYTES,
        };
        if (file.name == NULL || kept_file_vec_push(out, file) != ERR_OK) {
            free(file.name);
            return ERR_NO_MEMORY;
        }
    }
    kept_file_vec_sort(out, by_name);
    return ERR_OK;
}

static uint64_t bytes_of_all(const struct rotation *rotation, const struct kept_file_vec *files)
{
    struct stat own;
    uint64_t bytes = stat(rotation->path, &own) == 0 ? (uint64_t)own.st_blocks * BLOCK_BYTES : 0;
    for (size_t i = 0; i < files->len; i++) {
        bytes += files->items[i].bytes;
    }
    return bytes;
}

// Set how long ago each file was kept, by the pauses between the files. A clock that is wrong makes
// one long pause, and hours of recording make many short ones.
static void measure_ages(struct kept_file_vec *files, uint64_t keep_s, uint64_t now_s)
{
    uint64_t next_s = now_s;
    uint64_t seen_s = 0;
    for (size_t i = files->len; i-- > 0;) {
        const uint64_t time_s = files->items[i].time_s;
        seen_s += min_u64(next_s > time_s ? next_s - time_s : 0, keep_s / PAUSE_SHARE + 1);
        files->items[i].seen_s = seen_s;
        next_s = time_s;
    }
}

// Remove what is too old or too much, the oldest first.
static MUST_USE enum err prune(const struct rotation *rotation, uint64_t unix_ns)
{
    const struct rotation_options *options = &rotation->options;
    const uint64_t keep_s = options->keep_ms / MS_PER_S;
    const uint64_t now_s = unix_ns / NS_PER_S;
    CLEANUP(release_files) struct kept_file_vec files = {0};
    CLEANUP(text_freep)
    char *path = strndup(rotation->path, (size_t)(path_file_name(rotation->path) - rotation->path));
    if (path == NULL) {
        return ERR_NO_MEMORY;
    }
    CLEANUP(directory_closep) DIR *folder = opendir(path[0] != '\0' ? path : ".");
    if (folder == NULL) {
        return ERR_IO;
    }
    TRY(list_kept(rotation, folder, &files));
    measure_ages(&files, keep_s, now_s);
    uint64_t bytes = bytes_of_all(rotation, &files);
    for (size_t i = 0; i < files.len; i++) {
        const struct kept_file *file = &files.items[i];
        const bool is_old =
            options->keep_ms > 0 && file->time_s + keep_s < now_s && file->seen_s > keep_s;
        const bool is_too_much = options->max_bytes > 0 && bytes > options->max_bytes;
        if ((is_old || is_too_much) && unlinkat(dirfd(folder), file->name, 0) == 0) {
            bytes -= file->bytes;
        }
    }
    return ERR_OK;
}

// --- keeping ------------------------------------------------------------------------------------

// Link the file to its name with a time; a second one of the same second gets a number.
static MUST_USE enum err
link_file(struct rotation *rotation, const struct stamp *stamp, struct err_info *info)
{
    const size_t len = stem_len(rotation->path);
    for (unsigned number = 1; number <= SAME_SECOND_MAX; number++) {
        strbuf_clear(&rotation->kept);
        strbuf_printf(&rotation->kept, "%.*s.%s", (int)len, rotation->path, stamp->text);
        if (number > 1) {
            strbuf_printf(&rotation->kept, "_%02u", number);
        }
        strbuf_append_text(&rotation->kept, rotation->path + len);
        TRY(strbuf_result(&rotation->kept));
        // A link to the recording is replaced behind, so a second link to it would keep nothing.
        if (linkat(AT_FDCWD, rotation->path, AT_FDCWD, strbuf_text(&rotation->kept),
                   AT_SYMLINK_FOLLOW) == 0) {
            return ERR_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return err_set_errno(info, errno, "cannot keep the recording as '%s'",
                         strbuf_text(&rotation->kept));
}

enum err rotation_keep(struct rotation *rotation, uint64_t unix_ns, struct err_info *info)
{
    const struct stamp stamp = stamp_of(unix_ns);
    const enum err linked = link_file(rotation, &stamp, info);
    rotation->kept_bytes = linked == ERR_OK ? file_bytes(rotation->path) : rotation->kept_bytes;
    const enum err pruned = prune(rotation, unix_ns); // a full disk may be why nothing can be kept
    if (linked == ERR_OK && pruned != ERR_OK) {
        return err_set(info, pruned, "cannot look for old recordings beside '%s'", rotation->path);
    }
    return linked;
}
