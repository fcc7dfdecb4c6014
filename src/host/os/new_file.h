// SPDX-License-Identifier: MIT
// new_file: create and replace whole files, past what other users may have put in their place.
//
// Replacing a file writes a temporary file beside it and renames that: readers see the old or the
// new file, never a part. A failure leaves the old file and no temporary one. A killed process
// leaves none either, because the temporary file has no name until it is complete (O_TMPFILE),
// where the file system supports that. Everything is opened close-on-exec. Errors carry the path.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"

// A new file before it replaces the old one. Zeroed is valid: none.
//   replacement_begin -> write to .stream -> replacement_commit
// and `CLEANUP(replacement_abandon)` for every other exit.
struct replacement {
    FILE *stream;     // owned until commit or abandon
    char *path;       // owned; the final name
    char *temporary;  // owned; the current name, NULL for none
    bool is_nameless; // a regular file that gets its name when complete
};

// The permissions of a new file. Under sudo the file belongs to the caller of sudo.
enum {
    FILE_MODE_BY_UMASK = 0, // as any other file: 0666 without the umask's bits
    FILE_MODE_PRIVATE = 0600,
};

// Return the path behind all symbolic links at `path`, of an existing file or of one to create. The
// caller frees it. In a directory that is writable for all users, a link of another user is not
// followed (ERR_PERMISSION), whatever fs.protected_symlinks says. The result of a link without a
// target is that target, and a link of /proc/PID/fd is itself the result.
enum err file_find_target(const char *path, char **out, struct err_info *info) MUST_USE;

// Refuse what another user may have put at `path` as a trap: in a directory that is writable for
// all users, his link, his pipe, or whatever else is not a regular file (ERR_PERMISSION).
// Everything that cairn creates has passed this check.
enum err file_refuse_planted(const char *path, struct err_info *info) MUST_USE;

// Refuse regular files of another user, too, unless he is the caller of sudo. For what cairn obeys:
// settings that are there by default, tokens, keys.
enum err file_refuse_strangers(const char *path, struct err_info *info) MUST_USE;

// Append such a file to `out` as file_read does.
enum err
file_read_trusted(const char *path, size_t max_bytes, struct strbuf *out, struct err_info *info)
    MUST_USE;

// Begin to replace `path`. A pipe, a terminal, a device, or a descriptor (/dev/stdout, /dev/fd/N)
// is written to directly, unless file_refuse_planted refuses it. The target of a symbolic link is
// replaced, not the link (file_find_target). `mode`: FILE_MODE_..., or permissions that apply
// regardless of the umask.
enum err
replacement_begin(struct replacement *r, const char *path, mode_t mode, struct err_info *info)
    MUST_USE;

// Begin to replace a file that will be read again: ERR_INVALID for what is not a regular file, such
// as a pipe, whose opening may wait without end, or a device, which would keep nothing.
enum err replacement_begin_regular(struct replacement *r,
                                   const char *path,
                                   mode_t mode,
                                   struct err_info *info) MUST_USE;

// Flush, with `durable` also fsync, rename and release `r`. Reports an earlier failed write (disk
// full); the file at `path` is unchanged then.
enum err replacement_commit(struct replacement *r, bool durable, struct err_info *info) MUST_USE;

// Remove the temporary file and release `r`. Does nothing after a commit.
void replacement_abandon(struct replacement *r);

// Replace the regular file at `path` by `data`, with the permissions of the umask.
enum err file_replace(const char *path, struct bytes data, struct err_info *info) MUST_USE;

// Create an empty file, and open it so that everything is appended. It replaces an older one as a
// replacement does. The caller closes the descriptor.
enum err file_create(const char *path, mode_t mode, int *out_fd, struct err_info *info) MUST_USE;

// Create an empty file, unless there is one.
enum err file_create_missing(const char *path, mode_t mode, struct err_info *info) MUST_USE;
