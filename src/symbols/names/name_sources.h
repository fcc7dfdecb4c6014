// SPDX-License-Identifier: MIT
// name_sources: the places to search for names, besides the modules' own files and /usr/lib/debug.
//
// The caller fills it in from the user's options; a zeroed one adds no places. All pointers are
// borrowed. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct debuginfod;
struct name_cache;

struct name_sources {
    bool is_off;                        // look up no names, not even in the standard places
    const char *const *executable_dirs; // folders with copies of modules, by full path or by name
    size_t executable_dir_count;
    const char *const *debug_dirs; // folders like /usr/lib/debug, or with all debug files side by
                                   // side
    size_t debug_dir_count;
    int root_pid;                   // also search /proc/PID/root (containers); 0: no
    struct debuginfod *servers;     // used last; NULL: not used
    const struct name_cache *cache; // used before opening any file; NULL: none
    const char *const *wrappers;    // expressions: functions that only pass allocations on
    size_t wrapper_count;
};
