// SPDX-License-Identifier: MIT
// debug_search: finding the file of a module, and the separate file that holds its debug
// information.
//
// A module is looked for below the sysroot, in the target's own root (containers), and at its plain
// path, in this order; the first whose build-id is the recorded one wins. A separate debug file is
// looked for by build-id (<debug dir>/.build-id/ab/cdef.debug), then by .gnu_debuglink (beside the
// module, in .debug/ beside it, and in <debug dir>/<directory of the module>), then, if wished,
// asked of the debuginfod servers. A file whose build-id, or for want of one whose checksum, is
// another one is never used: wrong names are worse than none. libdebuginfod is loaded when it is
// first needed; it is no dependency. Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/err.h"
#include "symbols/elf_file.h"

struct debug_search {
    const char *sysroot;           // borrowed; NULL: none
    const char *const *debug_dirs; // borrowed; searched before /usr/lib/debug
    size_t debug_dir_count;
    int root_pid;        // its /proc/PID/root is searched; 0: none
    bool use_debuginfod; // may take as long as its DEBUGINFOD_TIMEOUT says
};

// Opens the module itself. `build_id` may be empty: then the first file that exists is taken.
// ERR_CORRUPT if there are files but all have other build-ids, ERR_NOT_FOUND if there is no file.
enum err debug_search_module(const struct debug_search *search,
                             const char *path,
                             struct bytes build_id,
                             struct elf_file *out,
                             struct err_info *info) MUST_USE;

// Opens the file with the DWARF of `module` (NULL if the module's file was not found; `path` is its
// name and `build_id` what was recorded or what the file says). ERR_NOT_FOUND if there is none.
enum err debug_search_dwarf(const struct debug_search *search,
                            const char *path,
                            struct bytes build_id,
                            const struct elf_file *module,
                            struct elf_file *out) MUST_USE;
