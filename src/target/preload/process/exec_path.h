// SPDX-License-Identifier: MIT
// exec_path: a path of the program that execveat or fexecve will execute.
//
// Of a descriptor's file it is the path that people know, if the file is there, else
// /proc/self/fd/N, as of a file in memory (memfd_create).
// Context: T, any caller; raw system calls only.
#pragma once

#define EXEC_PATH_BYTES_MAX 1024u // longer paths are not examined

// Return the path that execveat(folder, path, ...) means, in `name` or `path` itself. An empty path
// means the file of the descriptor. NULL: none.
const char *exec_path_of(int folder, const char *path, char name[static EXEC_PATH_BYTES_MAX]);
