// SPDX-License-Identifier: MIT
// file: opening, reading and replacing whole files; and the cleanups for what they hold.
//
// Everything is opened close-on-exec. A file is replaced by writing a temporary one beside it and
// renaming: readers see the old or the new one, never a part; a failure leaves the old one and no
// litter. Nor does a death: the temporary one has no name until it is whole (O_TMPFILE), where the
// file system can do that. Errors carry the path. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"

// For CLEANUP: close or free what the local holds, unless it is -1 or NULL. Errors are ignored, so
// a stream that was written to is closed by hand. They keep errno.
void fd_closep(int *fd);
void stream_closep(FILE **stream);
void text_freep(char **text);

// The descriptor, open for reading, is the caller's to close.
enum err file_open_read(const char *path, int *out_fd, struct err_info *info) MUST_USE;

// Appends the whole file to `out`. Does not trust its size (/proc files say 0, others grow): reads
// to the end. ERR_LIMIT if there is more than max_bytes.
enum err file_read(const char *path, size_t max_bytes, struct strbuf *out, struct err_info *info)
    MUST_USE;

// As file_read, from an open descriptor's current position; `path` only names it in errors.
enum err
file_read_fd(int fd, const char *path, size_t max_bytes, struct strbuf *out, struct err_info *info)
    MUST_USE;

// Creates the directories in which `path` is to lie, as `mkdir -p` would. Nothing to do is success.
enum err file_make_parents(const char *path, struct err_info *info) MUST_USE;

// Appends the absolute path of a file that need not exist, in a directory that does; a symbolic
// link in its last part stays.
enum err file_absolute_path(const char *path, struct strbuf *out, struct err_info *info) MUST_USE;

// Whether a shell would find the program: in one of the folders of PATH, or in /usr/bin and /bin
// where that is not set.
bool file_is_in_path(const char *program);

// Writes all of `data`, through short writes and EINTR.
enum err file_write_all(int fd, struct bytes data, const char *path, struct err_info *info)
    MUST_USE;

// A file in the making. Zeroed is valid: nothing under way.
//   replacement_begin -> write to .stream -> replacement_commit
// and `CLEANUP(replacement_abandon)` for every other way out.
struct replacement {
    FILE *stream;     // owned until commit or abandon
    char *path;       // owned; the name it will have
    char *temporary;  // owned; the name that it has now, NULL for none
    bool is_nameless; // a regular file that is named when it is whole
};

// What a new file may be used for by whom. Under sudo a file belongs to who called that.
enum {
    FILE_MODE_BY_UMASK = 0, // as any other file: 0666 less the umask
    FILE_MODE_PRIVATE = 0600,
};

// The name of what is at `path` behind all symbolic links, or of what is to be made there; the
// caller's. A link that somebody else has put into a directory in which anybody may create files is
// not followed (ERR_PERMISSION), whatever fs.protected_symlinks says. A link to nothing is itself
// the target.
enum err file_find_target(const char *path, char **out, struct err_info *info) MUST_USE;

// Gives a file that was just created to who called sudo; nothing if nobody did.
void file_give_to_caller(int fd);

// A pipe, a terminal or a device at `path` is written to as it is, and what a symbolic link points
// to is replaced, not the link (file_find_target). `mode`: FILE_MODE_..., or permissions that hold
// whatever the umask is.
enum err
replacement_begin(struct replacement *r, const char *path, mode_t mode, struct err_info *info)
    MUST_USE;

// Flushes, with `durable` also fsyncs, renames and releases `r`. A write that failed earlier (disk
// full) is noticed here; then the file at `path` is as it was.
enum err replacement_commit(struct replacement *r, bool durable, struct err_info *info) MUST_USE;

// Removes the temporary and releases `r`; does nothing after a commit.
void replacement_abandon(struct replacement *r);

// All of the above for bytes that are at hand, by the umask.
enum err file_replace(const char *path, struct bytes data, struct err_info *info) MUST_USE;
