// SPDX-License-Identifier: MIT
// preflight: can this program be recorded? Asked before it runs, so that a refusal costs nothing.
//
// The program is looked up as execvp would do it, the interpreters of scripts are followed, and the
// ELF file that will really run is read: session/exec_check.h says whether a library can be
// preloaded into it, and an executable that exports its own malloc binds every library to itself.
// Every refusal is one sentence and the exit status that a shell would give: 127 for a program that
// is not there, 126 for one that is there and cannot be run or recorded.
// Trust: the file may be anything; libelf checks what it reads, and counts are capped.
// Context: H, before the session exists.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/text/strbuf.h"

#define PREFLIGHT_STATUS_NOT_FOUND     127
#define PREFLIGHT_STATUS_CANNOT_RECORD 126

struct preflight {
    struct strbuf path;       // what execve will be given; owned
    struct strbuf executable; // the ELF file behind it: differs for scripts; owned
    bool exports_malloc;      // only with allow_own_malloc, else it is refused
    int exit_status;          // after a failure: what to exit with
};

struct preflight_options {
    bool allow_own_malloc; // --force: record what can be recorded of an own-malloc executable
    bool follow_children;  // such an executable's children can be recorded
};

// Examines argv[0], or what it runs if it is the loader of shared libraries. On failure
// `out->exit_status` is set all the same and `info` says why. preflight_release() in either case.
enum err preflight_check(char *const *argv,
                         const struct preflight_options *options,
                         struct preflight *out,
                         struct err_info *info) MUST_USE;
void preflight_release(struct preflight *preflight);
