// SPDX-License-Identifier: MIT
// debug_search: finding the file of a module, and the separate file that holds its debug
// information.
//
// A module is looked for in the executable directories, in the target's own root (containers), and
// at its plain path, in this order; the first whose build-id is the recorded one wins. A separate
// debug file is looked for by build-id (<debug dir>/.build-id/ab/cdef.debug), then by the module's
// name (<debug dir>/<name>.debug), then by .gnu_debuglink (beside the module, in .debug/ beside it,
// in <debug dir>, and in <debug dir>/<directory of the module>), then in what debuginfod has
// fetched before, then, if wished, from its servers. A file whose build-id, or for want of one
// whose checksum, is another one is never used: wrong names are worse than none. Context: H; one
// thread.
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "symbols/elf/elf_file.h"
#include "symbols/names/name_sources.h"

// Opens the module itself. `build_id` may be empty: then the first file that exists is taken.
// ERR_CORRUPT if there are files but all have other build-ids, ERR_NOT_FOUND if there is no file.
enum err debug_search_module(const struct name_sources *sources,
                             const char *path,
                             struct bytes build_id,
                             struct elf_file *out,
                             struct err_info *info) MUST_USE;

// Opens the file with the DWARF of `module` (NULL if the module's file was not found; `path` is its
// name and `build_id` what was recorded or what the file says). ERR_NOT_FOUND if there is none.
enum err debug_search_dwarf(const struct name_sources *sources,
                            const char *path,
                            struct bytes build_id,
                            const struct elf_file *module,
                            struct elf_file *out) MUST_USE;
