// SPDX-License-Identifier: MIT
// name_sources: where names may be looked for, beside the modules' own files and /usr/lib/debug.
//
// Filled in by who knows what the user wants; a zeroed one adds nothing. All is borrowed.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct debuginfod;
struct name_cache;

struct name_sources {
    bool is_off; // nothing is looked up at all, not even in the standard places
    const char *const
        *executable_dirs; // with copies of modules, below their paths or by name alone
    size_t executable_dir_count;
    const char *const *debug_dirs; // like /usr/lib/debug, or with debug files side by side
    size_t debug_dir_count;
    int root_pid;                   // look into /proc/PID/root, too (containers); 0: no
    struct debuginfod *servers;     // asked last; NULL: they are not
    const struct name_cache *cache; // asked before any file is opened; NULL: none
};
