// SPDX-License-Identifier: MIT
// mapped_files: which file's code lies where in a process, as a foreign profile lists it.
//
// Mappings are added as they stand in the file. A mapping's base is what turns an address into an
// offset in the ELF file's own terms; mappings of one file that follow each other share that of the
// first, and an executable that lies so low that it was linked to lie there has 0. Context: H; one
// thread.
#pragma once

#include "formats/import/importer.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"

struct mapped_file {
    uint64_t start;
    uint64_t end;
    uint64_t base;   // of its file's first mapping
    uint32_t module; // REC_NONE: of no file
};

DEFINE_VEC(mapped_file_vec, struct mapped_file);

struct mapped_files {
    struct mapped_file_vec items; // owned
    struct map_u64 module_of;     // owned; by the path's rec_string
};

void mapped_files_release(struct mapped_files *files); // accepts a zeroed one

// A mapping of `path` (empty: of no file) from start to end, from `offset` on in the file.
enum err mapped_files_add(struct mapped_files *files,
                          struct import *import,
                          struct bytes path,
                          struct mapped_file range,
                          uint64_t offset) MUST_USE;

// By address, which mapped_files_find needs.
void mapped_files_sort(struct mapped_files *files);

// The mapping that holds the call before the return address, NULL if none does.
const struct mapped_file *mapped_files_find(const struct mapped_files *files,
                                            uint64_t return_address);

uint64_t mapped_files_bytes(const struct mapped_files *files); // of memory
