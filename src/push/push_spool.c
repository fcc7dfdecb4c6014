// SPDX-License-Identifier: MIT
// push_spool: see push_spool.h.
//
// A file is written under another name first and renamed, so a killed process leaves no half entry;
// what it does leave has the name "new", which the next one removes.
#include "push/push_spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/order.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "host/text/number.h"

enum {
    DIGITS = 20, // of UINT64_MAX
    NAME_BYTES = 32,
    FOLDER_MODE = 0700,
};

static const char suffix[] = ".push";
static const char unfinished[] = "new";

struct entry_name {
    char text[NAME_BYTES];
};

static struct entry_name name_of(uint64_t order)
{
    struct entry_name name;
    (void)snprintf(name.text, sizeof(name.text), "%0*" PRIu64 "%s", DIGITS, order, suffix); // fits
    return name;
}

static bool parse_name(const char *name, uint64_t *order)
{
    const char *at = name;
    return strlen(name) == DIGITS + sizeof(suffix) - 1 && number_take(&at, 10, order) &&
           at == name + DIGITS && strcmp(at, suffix) == 0;
}

static int by_order(const void *left, const void *right)
{
    const uint64_t a = ((const struct push_entry *)left)->order;
    const uint64_t b = ((const struct push_entry *)right)->order;
    return order_u64(a, b);
}

static void remove_entry(struct push_spool *spool, size_t at, bool is_lost)
{
    struct push_entry *entry = &spool->entries.items[at];
    if (!entry->is_in_memory) {
        // If it cannot be removed, the next process sends it once more.
        (void)unlinkat(spool->folder, name_of(entry->order).text, 0);
    }
    spool->bytes -= entry->bytes;
    spool->lost_count += is_lost;
    strbuf_release(&entry->text);
    memmove(entry, entry + 1, (spool->entries.len - at - 1) * sizeof(*entry));
    spool->entries.len--;
}

static void remove_first(struct push_spool *spool, bool is_lost)
{
    remove_entry(spool, 0, is_lost);
}

static void make_room(struct push_spool *spool, uint64_t bytes)
{
    while (spool->entries.len > 0 && spool->bytes + bytes > spool->max_bytes) {
        remove_first(spool, true);
    }
}

static void close_folder(DIR **folder)
{
    if (*folder != NULL) {
        (void)closedir(*folder); // only read
    }
}

// Find the entries that an earlier process left.
static MUST_USE enum err list_folder(struct push_spool *spool)
{
    CLEANUP(close_folder) DIR *folder = fdopendir(openat(spool->folder, ".", O_RDONLY | O_CLOEXEC));
    struct stat status;
    if (folder == NULL) {
        return ERR_IO;
    }
    for (const struct dirent *file; (file = readdir(folder)) != NULL;) {
        struct push_entry entry = {0};
        if (parse_name(file->d_name, &entry.order) &&
            fstatat(spool->folder, file->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode)) {
            entry.bytes = (uint64_t)status.st_size;
            TRY(push_entry_vec_push(&spool->entries, entry));
            spool->bytes += entry.bytes;
        }
    }
    push_entry_vec_sort(&spool->entries, by_order);
    make_room(spool, 0);
    return ERR_OK;
}

enum err push_spool_open(const char *folder,
                         uint64_t max_bytes,
                         struct push_spool *out,
                         struct err_info *info)
{
    CLEANUP(push_spool_close) struct push_spool spool = {.folder = -1, .max_bytes = max_bytes};
    if (folder != NULL) {
        TRY(file_make_parents(folder, info));
        TRY(file_refuse_planted(folder, info)); // he would read and replace what is kept
        if (mkdir(folder, FOLDER_MODE) != 0 && errno != EEXIST) {
            return err_set_errno(info, errno, "cannot create the folder '%s'", folder);
        }
        spool.folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (spool.folder < 0) {
            return err_set_errno(info, errno, "cannot open the folder '%s'", folder);
        }
        if (flock(spool.folder, LOCK_EX | LOCK_NB) != 0) {
            return err_set(info, ERR_INVALID, "the folder '%s' is used by another cairn", folder);
        }
        const enum err err = list_folder(&spool);
        if (err != ERR_OK) {
            return err_set_errno(info, errno, "cannot read the folder '%s'", folder);
        }
    }
    *out = spool;
    spool = (struct push_spool){.folder = -1};
    return ERR_OK;
}

void push_spool_close(struct push_spool *spool)
{
    for (size_t i = 0; i < spool->entries.len; i++) {
        strbuf_release(&spool->entries.items[i].text);
    }
    push_entry_vec_release(&spool->entries);
    fd_closep(&spool->folder);
    *spool = (struct push_spool){.folder = -1};
}

static MUST_USE enum err
write_entry(const struct push_spool *spool, uint64_t order, struct bytes entry)
{
    struct err_info info;
    (void)unlinkat(spool->folder, unfinished, 0); // there is none but after a kill
    CLEANUP(fd_closep)
    int fd = openat(spool->folder, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                    FILE_MODE_PRIVATE);
    if (fd < 0) {
        return ERR_IO;
    }
    TRY(file_write_all(fd, entry, unfinished, &info));
    return renameat(spool->folder, unfinished, spool->folder, name_of(order).text) == 0 ? ERR_OK
                                                                                        : ERR_IO;
}

static bool can_write(const struct push_spool *spool, uint64_t order, struct bytes entry)
{
    if (spool->folder < 0) {
        return false;
    }
    const bool is_written = write_entry(spool, order, entry) == ERR_OK;
    if (!is_written) {
        (void)unlinkat(spool->folder, unfinished, 0); // there may be none
    }
    return is_written;
}

// Drop the entry that waits in memory for lack of room in the folder: one may.
static void drop_unwritten(struct push_spool *spool)
{
    for (size_t i = 0; spool->folder >= 0 && i < spool->entries.len; i++) {
        if (spool->entries.items[i].is_in_memory) {
            remove_entry(spool, i, true);
            return;
        }
    }
}

static MUST_USE enum err keep_entry(struct push_spool *spool, uint64_t order, struct bytes entry)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    TRY(push_entry_vec_reserve(&spool->entries, 1));
    const bool is_in_memory = !can_write(spool, order, entry);
    if (is_in_memory) {
        drop_unwritten(spool);
        strbuf_append(&text, entry.data, entry.len);
        TRY(strbuf_result(&text));
    }
    const struct push_entry kept = {
        .order = order, .bytes = entry.len, .is_in_memory = is_in_memory, .text = TAKE(text)};
    spool->bytes += entry.len;
    return push_entry_vec_push(&spool->entries, kept);
}

void push_spool_add(struct push_spool *spool, uint64_t order, struct bytes entry)
{
    const struct push_entry_vec *entries = &spool->entries;
    if (entry.len > spool->max_bytes) {
        spool->lost_count++;
        return;
    }
    make_room(spool, entry.len);
    // The clock may have been set back, and names must differ.
    const uint64_t last = entries->len > 0 ? entries->items[entries->len - 1].order : 0;
    if (keep_entry(spool, order > last ? order : last + 1, entry) != ERR_OK) {
        spool->lost_count++;
    }
}

void push_spool_settle(struct push_spool *spool)
{
    for (size_t i = 0; i < spool->entries.len;) {
        struct push_entry *entry = &spool->entries.items[i];
        if (entry->is_in_memory && !can_write(spool, entry->order, strbuf_bytes(&entry->text))) {
            remove_entry(spool, i, true);
            continue;
        }
        entry->is_in_memory = false;
        i++;
    }
}

static MUST_USE enum err read_entry(const struct push_spool *spool, struct strbuf *out)
{
    const struct push_entry *first = &spool->entries.items[0];
    struct err_info info;
    if (first->is_in_memory) {
        strbuf_append(out, strbuf_text(&first->text), first->text.len);
        return strbuf_result(out);
    }
    const struct entry_name name = name_of(first->order);
    CLEANUP(fd_closep)
    int fd = openat(spool->folder, name.text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd < 0 ? ERR_IO : file_read_fd(fd, name.text, spool->max_bytes, out, &info);
}

enum err push_spool_oldest(struct push_spool *spool, struct strbuf *out)
{
    while (spool->entries.len > 0) {
        const size_t start = out->len;
        if (read_entry(spool, out) == ERR_OK) {
            return ERR_OK;
        }
        strbuf_truncate(out, start);
        remove_first(spool, true);
    }
    return ERR_NOT_FOUND;
}

void push_spool_drop(struct push_spool *spool, bool is_lost)
{
    if (spool->entries.len > 0) {
        remove_first(spool, is_lost);
    }
}
