// SPDX-License-Identifier: MIT
// module_table: finds the loaded module that contains a pc, and its unwind tables.
//
// How: glibc 2.35 and later has _dl_find_object, which takes no lock. It is looked up weakly. Where
// it is missing, module_table_refresh() lists the modules (it takes the loader's lock), and the
// list is searched instead, then copies of the loader's own list, for modules that came later.
// Lists are replaced, never changed: readers see the old or the new list.
// Invariant: a span's memory stays mapped while its module is loaded, and code that is on a stack
// is loaded. Owns: the lists, one after the other; a replaced list is kept for its readers, and the
// next refresh but one reuses it. Context: T; find anywhere, refresh not in hooks. Failure: without
// a list, or with a full one, pcs are not found, and walks follow frame pointers.
//
// The kernel maps the segments of a program and of its loader one by one. If free pages remain
// between them (segments aligned to 64 KiB, some of lld's layouts), other mappings may be there:
// then each run of segments is a span. A library owns all pages of its range: it is one span.
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "target/unwind/cfi/eh_frame.h"

struct module_span {
    uint64_t start; // of the mapping, or of the segment
    uint64_t end;   // exclusive
    uint64_t bias;
    struct bytes headers; // the module's program headers; empty if unreachable
    uint64_t hdr_addr;    // of .eh_frame_hdr, 0 if there is none
    struct bytes tables;  // the unwind tables, if they are not in the module; else empty
    const char *path;     // "" for the main program; owned by the loader
    uint64_t identity;    // another one if another module takes this one's place; else 0
};

// Find the module that contains `pc`. The span is written only on success.
bool module_table_find(uint64_t pc, struct module_span *out);

// Find the module of `pc` without reading memory of the module or the loader, because both may
// be unmapped: unless the module is never unloaded, the span has no headers that can be read in
// place, and bias and path only if the table has them in memory of its own.
bool module_table_find_unread(uint64_t pc, struct module_span *out);

// Complete the bias and the path of a span that module_table_find_unread() found, by the same rule.
// `path` has room for `path_bytes`, which are zero, and holds the path if it is not in memory of
// the table's own. False if the module was unloaded.
bool module_table_name_unread(struct module_span *span, char *path, size_t path_bytes);

// Whether `pc` is in a module that was listed at the start, which is never unloaded.
bool module_table_stays(uint64_t pc);

// Find the module of `pc` in the list that the last module_table_refresh() made.
bool module_table_find_listed(uint64_t pc, struct module_span *out);

// List the loaded modules. Where module_table_find() does not need the list, it contains the
// modules that are never unloaded.
void module_table_refresh(void);

// Whether module_table_refresh() has listed them.
bool module_table_is_listed(void);

// Whether module_table_find() needs an earlier module_table_refresh().
bool module_table_needs_refresh(void);

// Find the unwind tables of the module; false if it has none that can be reached.
bool module_table_unwind(const struct module_span *span, struct eh_table *out);

// Return the program headers of the module that is mapped from `start` to `end`; UINT64_MAX: its
// end is not known. The first page is completely in memory even if the module is shorter; headers
// behind it are looked for where the file has them. Empty if the module does not begin with a
// suitable ELF header, or its program headers are not mapped.
struct bytes module_table_headers(uint64_t start, uint64_t end);

// Return the next header of `type` at or after *index; NULL if there is none. Moves *index past it.
const Elf64_Phdr *module_table_next_header(struct bytes headers, uint32_t type, size_t *index);

// Segments of a module without a free page between them.
struct module_run {
    uint64_t start; // of its first page, as the file states it, like the end
    uint64_t end;   // exclusive
};

// Find the next run of a module whose headers are given, at or after *index. Moves *index past it.
bool module_table_next_run(struct bytes headers, size_t *index, struct module_run *out);

// Narrow a span, whose bias and headers are known, to the run with `pc`; false if `pc` is in none.
bool module_table_narrow(uint64_t pc, struct module_span *span);

// Return the build-id in the module's mapped notes; empty if it has none.
struct bytes module_table_build_id(const struct module_span *span);
