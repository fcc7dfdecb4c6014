// SPDX-License-Identifier: MIT
// target_file: opens the files that a profiled process names, has mapped or executes.
//
// Their names are the process's own choice, and cairn may have more rights than it:
//
//   - A path is walked part by part below the root of the process. A symbolic link is a text that
//     is walked likewise, so none leads out of that root, and links of /proc lead to no descriptor.
//   - The process itself must be permitted to pass the folders and to read the file.
//   - Only a regular file is opened, never a device or a pipe, whose opening has effects: a
//     descriptor without access (O_PATH) shows what it is, and is then opened itself.
//
// openat2(2) is not used, because it asks for the rights of its caller. Access control lists count
// only as far as the permission bits show them. Files of /proc and of sysfs are no files of a
// program. All other opens of such paths are forbidden (tools/check_symbols.py). Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "host/text/strbuf.h"

// Open for reading the file that `path` names for the process; pid 0: for cairn, with its rights.
// ERR_NOT_FOUND, ERR_PERMISSION, ERR_UNSUPPORTED if it is not a regular file, ERR_NO_MEMORY,
// ERR_IO. What cairn itself lacks is `errno_value` of the sentence (err_is_own_lack).
enum err target_file_open(int pid, const char *path, int *out_fd, struct err_info *info) MUST_USE;

// Open what a path of the user's choice names, with cairn's rights.
enum err target_file_open_named(const char *path, int *out_fd, struct err_info *info) MUST_USE;

// Open the file that a process has mapped there, whatever its name is now. ERR_PERMISSION without
// CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
enum err
target_file_open_mapped(int pid, uint64_t start, uint64_t end, int *out_fd, struct err_info *info)
    MUST_USE;

// Append the working folder of a process, as cairn names it. False, and nothing appended, if it
// cannot be read.
bool target_file_append_folder(int pid, struct strbuf *out);

// Open a folder, for target_file_open_in alone. Return -1 on failure.
int target_file_open_folder(int pid, const char *path);
enum err target_file_open_in(int folder, const char *name, int *out_fd, struct err_info *info)
    MUST_USE;

// Find what `path` names for the process. Return whether there is something.
bool target_file_stat(int pid, const char *path, struct stat *out);

// Return whether the paths of a process name the same files as those of cairn.
bool target_file_shares_root(int pid);

// Return whether only root and the user can have written what a file of cairn's root holds.
bool target_file_is_trusted(const struct stat *status);
