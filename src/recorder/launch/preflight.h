// SPDX-License-Identifier: MIT
// preflight: checks before the start whether a program can be recorded, so that a refusal costs
// nothing.
//
// It looks the program up as execvp does, follows the interpreters of scripts, and reads the ELF
// file that will run. session/exec_check.h decides whether a library can be preloaded into it. If
// not because it is static or has another libc, or if it has an allocator of its own
// (allocator_scan.h), which a preloaded library does not see, the program wants the agent instead.
// A refusal is one sentence and the exit status of a shell: 127 for a program that does not exist,
// 126 for a program that exists and cannot be run or recorded.
// Trust: the file may have any content; libelf checks what it reads, and counts are capped.
// Context: H, before the session exists.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "inject/allocators/allocator_scan.h"
#include "symbols/elf/elf_file.h"

#define PREFLIGHT_STATUS_NOT_FOUND     127
#define PREFLIGHT_STATUS_CANNOT_RECORD 126

struct allocator_name_vec;

struct preflight {
    struct strbuf path;       // the path for execve; owned
    struct strbuf executable; // the ELF file behind it: differs for scripts; owned
    bool is_static;           // it loads no library, but passes the environment on to its children
    bool wants_agent;         // the preload library cannot record it, or not all of it
    struct strbuf refusal;    // then: why, to be said where the agent is refused; owned
    struct elf_file file;     // the executable, until preflight_find_hidden(); owned
    struct allocator_scan scan; // of it; owned
    struct strbuf hidden;       // what it returned; owned
    int exit_status;            // after a failure: what to exit with
};

struct preflight_options {
    bool allow_own_malloc;   // --force: record as much as possible of such an executable
    bool follow_children;    // its children can be recorded
    bool can_use_agent;      // the agent can be put into the program
    bool searches_libraries; // --all-allocators: the agent is wanted for any program
    const struct allocator_name_vec *allocator_names; // the user's, which the agent finds; or NULL
};

// Examine argv[0], or the program that it runs if it is the dynamic loader. On failure
// `out->exit_status` is set and `info` has the reason. Call preflight_release() in either case.
enum err preflight_check(char *const *argv,
                         const struct preflight_options *options,
                         struct preflight *out,
                         struct err_info *info) MUST_USE;

// Return a sentence about an allocator inside that has no names; NULL: there is none, or it was
// asked for before. It takes as long as a tenth of a short run, so the program runs meanwhile.
const char *preflight_find_hidden(struct preflight *preflight);
void preflight_release(struct preflight *preflight); // accepts a zeroed one
