// SPDX-License-Identifier: MIT
// file: open and read whole files, and what is known of their paths; and cleanups for descriptors,
// streams and memory. Files are created by new_file.h.
//
// Everything is opened close-on-exec. Errors carry the path. Context: H.
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"

// For CLEANUP: close or free the value of the local, unless it is -1 or NULL. They ignore errors,
// so a stream that was written to must be closed explicitly. They keep errno.
void fd_closep(int *fd);
void stream_closep(FILE **stream);
void directory_closep(DIR **directory); // that was only read
void text_freep(char **text);

// Open `path` for reading. The caller closes the descriptor.
enum err file_open_read(const char *path, int *out_fd, struct err_info *info) MUST_USE;

// Append the whole file to `out`. Read to the end, because its size is not reliable (/proc files
// say 0, others grow). ERR_LIMIT if it has more than max_bytes.
enum err file_read(const char *path, size_t max_bytes, struct strbuf *out, struct err_info *info)
    MUST_USE;

// Append the rest of an open file, from its current position. `path` only names it in errors. Fails
// as file_read does.
enum err
file_read_fd(int fd, const char *path, size_t max_bytes, struct strbuf *out, struct err_info *info)
    MUST_USE;

// Create the missing parent directories of `path`, as `mkdir -p` does.
enum err file_make_parents(const char *path, struct err_info *info) MUST_USE;

// Append the absolute path of a file. The file need not exist, its directory must. A symbolic link
// as the last part stays.
enum err file_absolute_path(const char *path, struct strbuf *out, struct err_info *info) MUST_USE;

// Append cairn's folder among the user's files of the kind that `variable` is for:
// "$XDG_CACHE_HOME/cairn", or below the home, "$HOME/.cache/cairn". Relative paths are ignored (XDG
// Base Directory Specification). False: nothing was appended.
bool file_append_user_folder(struct strbuf *out, const char *variable, const char *below_home);

// Return whether both paths exist, and lead to one file.
bool file_is_same(const char *one, const char *other);

// Return whether a shell would find the program: in a folder of PATH, or in /usr/bin and /bin if
// PATH is not set.
bool file_is_in_path(const char *program);

// Write all of `data`. Continues after short writes and EINTR.
enum err file_write_all(int fd, struct bytes data, const char *path, struct err_info *info)
    MUST_USE;

// A hash of device, inode, size and modification time; it identifies one state of a file.
uint64_t file_identity(const struct stat *status);

// The part of a path after the last slash, if anything follows it.
const char *path_file_name(const char *path);
