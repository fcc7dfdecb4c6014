// SPDX-License-Identifier: MIT
// foreign_places: the places of code in foreign profiles: the mappings of files in a process, and
// the frames of Valgrind's tools.
//
// Mappings are added in file order. The base of a mapping converts an address into an offset in the
// terms of the ELF file. Consecutive mappings of one file share the base of the first. An
// executable at such a low address that it was linked for it has base 0. Context: H; one thread.
#pragma once

#include "formats/import/importer.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"

struct mapped_file {
    uint64_t start;
    uint64_t end;
    uint64_t base;   // base of its file's first mapping
    uint32_t module; // REC_NONE: no file
};

DEFINE_VEC(mapped_file_vec, struct mapped_file);

// Add a mapping of `path` (empty: no file) from start to end, at `offset` in the file.
void mapped_files_add(struct mapped_file_vec *files,
                      struct import *import,
                      struct bytes path,
                      struct mapped_file range,
                      uint64_t offset);

// Sort by address. mapped_files_find needs it.
void mapped_files_sort(struct mapped_file_vec *files);

// Return the mapping that holds the call before the return address, NULL if none does.
const struct mapped_file *mapped_files_find(const struct mapped_file_vec *files,
                                            uint64_t return_address);

// Return the frame that `text` describes, as "0x10A2FA: main (t.cpp:10)"; equal texts are one
// frame. Any other text becomes a function of that name.
// `frame_of` has the known frames, by the rec_string of their text.
uint32_t valgrind_place_frame(struct map_u64 *frame_of, struct import *import, struct bytes text);
