// SPDX-License-Identifier: MIT
// output_name: the file name of a recording.
//
// In the word after -o, %p is the program's pid, %h the host name and %% a %. Any other use of % is
// an error. Without -o the name is "cairn.<program>.%p.cairn" in the current directory. <program>
// is the last part of the program's path, cut to the length that file names may have. Of ASCII,
// only letters, digits and ._+- are kept. Other characters are kept if they are printable.
// Everything else becomes _. Context: H; pure, except for output_name_is_recording.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"

// Append the default pattern of a program, with or without its pid.
void output_name_append_default(struct strbuf *out, const char *program, bool has_pid);

// Append `pattern`, or the default pattern of a program with its pid if it is NULL.
void output_name_append_pattern(struct strbuf *out, const char *pattern, const char *program);

// Append the pattern that means just this path.
void output_name_append_path(struct strbuf *out, const char *path);

// Append the path of the recording of a process on this host. Return ERR_INVALID with a sentence
// for an invalid pattern.
enum err
output_name_expand(const char *pattern, uint32_t pid, struct strbuf *out, struct err_info *info)
    MUST_USE;

// Return whether the operand `path` of a command means a recording, not a program: a regular file
// that cannot be executed, or no file yet, by the name of a recording or of heaptrack's.
bool output_name_is_recording(const char *path);
