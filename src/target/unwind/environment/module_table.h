// SPDX-License-Identifier: MIT
// module_table: which loaded module holds a pc, and where its unwind tables are.
//
// How: glibc 2.35 and later answer by _dl_find_object, without a lock. It is looked up weakly;
// where it is missing, module_table_refresh() lists the modules (it takes the loader's lock) and
// the list is searched instead. Lists are replaced, never changed: readers see the old or the new
// one. Invariant: a span's memory stays mapped while its module is loaded, and code that is on a
// stack is loaded. Owns: the lists, one after the other; a replaced list is kept for readers that
// still hold it and reused by the next refresh but one. Context: T; find anywhere, refresh not in
// hooks. Failure: no list or a full one means that pcs are not found, and frames go by frame
// pointer.
//
// The kernel maps a program's segments one by one. If pages are left free between them (segments
// aligned to 64 KiB, some of lld's layouts), other mappings may lie there: then each segment is a
// span. A library's pages are all its own: it is one span.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "target/unwind/cfi/eh_frame.h"

struct module_span {
    uint64_t start; // of the mapping, or of the segment
    uint64_t end;   // exclusive
    uint64_t bias;
    struct bytes headers; // the module's program headers; empty if they cannot be reached
    uint64_t hdr_addr;    // of .eh_frame_hdr, 0 if there is none
    const char *path;     // "" for the main program; owned by the loader
    uint64_t link_map;    // of the loader's list; 0 if unknown
};

// The module that holds `pc`; the span is written only if there is one.
bool module_table_find(uint64_t pc, struct module_span *out);

// As module_table_find, but reads nothing that the module or the loader owns, so that either may be
// gone already: no bias, headers and path.
bool module_table_find_unread(uint64_t pc, struct module_span *out);

// True if `pc` is in a module that was listed at the start, which is never unloaded.
bool module_table_stays(uint64_t pc);

// As module_table_find, in the list that the last module_table_refresh() made.
bool module_table_find_listed(uint64_t pc, struct module_span *out);

// Lists the loaded modules. Where module_table_find() does not need the list, it is of those that
// are never unloaded.
void module_table_refresh(void);

// True once module_table_refresh() has listed them.
bool module_table_is_listed(void);

// True if module_table_find() needs module_table_refresh() to have been called.
bool module_table_needs_refresh(void);

// The unwind tables of the module; false if it has none that can be reached.
bool module_table_unwind(const struct module_span *span, struct eh_table *out);

// The program headers of a module whose first mapped page is at `start`: that page is whole in
// memory though the module may be shorter. Empty if it does not begin with an ELF header of our
// kind.
struct bytes module_table_headers(uint64_t start);

// The build-id in the module's mapped notes; empty if it has none.
struct bytes module_table_build_id(const struct module_span *span);
