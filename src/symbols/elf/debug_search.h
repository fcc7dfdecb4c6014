// SPDX-License-Identifier: MIT
// debug_search: find the file of a module, and the separate file with its debug information.
//
// Places for a module, in this order: the executable directories, the target's root (containers),
// the plain path. The first file with the recorded build-id wins. Places for a separate debug file:
// by build-id (<debug dir>/.build-id/ab/cdef.debug); by the module's name (<debug
// dir>/<name>.debug); by .gnu_debuglink (beside the module, in .debug/ beside it, in <debug dir>,
// and in <debug dir>/<directory of the module>); among earlier downloads of debuginfod; on its
// servers, if the user wants that. A file with another build-id, or without a build-id and with
// another checksum, is never used: wrong names are worse than none. Context: H; one thread.
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "symbols/elf/elf_file.h"
#include "symbols/names/name_sources.h"

// Open the module itself. If `build_id` is empty, take the first file that exists. ERR_CORRUPT if
// all files have other build-ids, ERR_NOT_FOUND if there is no file.
enum err debug_search_module(const struct name_sources *sources,
                             const char *path,
                             struct bytes build_id,
                             struct elf_file *out,
                             struct err_info *info) MUST_USE;

// Open the file with the DWARF of `module`, which is NULL if the module's file was not found.
// `path` is the module's path, `build_id` the recorded one or the one in the file. ERR_NOT_FOUND if
// there is none.
enum err debug_search_dwarf(const struct name_sources *sources,
                            const char *path,
                            struct bytes build_id,
                            const struct elf_file *module,
                            struct elf_file *out) MUST_USE;
