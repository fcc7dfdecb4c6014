// SPDX-License-Identifier: MIT
// memory_areas: the memory map of a process, from /proc/PID/smaps and pagemap.
//
// smaps is read whole, at once; but the process keeps running, and the kernel returns a piece at a
// time. So the total of a snapshot is the sum of its own lines, and may differ from other files.
// An area that grew downwards, or was joined to another, between two pieces overlaps what came
// before: then the later line holds.
// Context: H. The kernel writes the texts, but a program chooses names and sizes; both are bounded.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"

struct memory_area {
    uint64_t start;
    uint64_t end;
    uint64_t rss_bytes;
    uint64_t swap_bytes;
    uint64_t shared_bytes;       // of rss_bytes: pages that more than one mapping has
    uint64_t proportional_bytes; // of shared_bytes: each page divided among its mappings
    uint64_t huge_bytes;         // of rss_bytes: anonymous huge pages
    uint64_t blank_bytes;        // of huge_bytes, an estimate: only zeros (outside/huge_pages.h)
    uint64_t device;             // of the file, with inode; anonymous memory has zeros
    uint64_t inode;
    uint64_t bss_end;   // behind a file's mapping, the file's .bss ends here at the latest
    size_t path;        // offset in memory_areas.text of a zero-terminated text
    bool is_accessible; // readable, writable or executable
    bool is_shared;
    bool may_block; // its file system may be one in user space, which may never answer
};

DEFINE_VEC(memory_area_vec, struct memory_area);

// Zeroed is empty and valid.
struct memory_areas {
    struct memory_area_vec areas; // by address
    struct strbuf text;
};

// Parse the text of smaps; takes and changes `text`. ERR_CORRUPT: it is not smaps. The areas are
// whole pages in order; none has more in memory, or in swap, than its size, and no part of what it
// has in memory is larger than the whole.
enum err memory_areas_parse(struct strbuf *text, struct memory_areas *out) MUST_USE;

// Read the areas of a process. ERR_NOT_FOUND: it has ended; other errors: it may not be read.
enum err memory_areas_read(pid_t pid, struct memory_areas *out) MUST_USE;

// A source of resident pages. `read` sets bit i of `bits` if page `first` + i is resident; false if
// that is unknown. The caller has zeroed (count + 63) / 64 words.
struct page_source {
    bool (*read)(void *context, uint64_t first_page, size_t count, uint64_t *bits);
    void *context;
};

// A source of what the program's memory holds: false if not all `size_bytes` can be read.
struct memory_source {
    bool (*read)(void *context, uint64_t address, void *out, size_t size_bytes);
    void *context;
};

// Bound each .bss by the program headers in memory: `memory` is an open /proc/PID/mem.
// The kernel makes one area of a .bss and of what was mapped behind it. A shared mapping and a file
// that is no ELF file have no .bss. Where the headers cannot be read, or where reading them could
// wait for another process because they are not resident, all of the area may be .bss.
void memory_areas_bound_bss(struct memory_areas *areas,
                            int memory,
                            const struct page_source *pages);

void memory_areas_release(struct memory_areas *areas);

// Return the name of an area, "" if it has none.
const char *memory_area_path(const struct memory_areas *areas, const struct memory_area *area);

#define MEMORY_GUARD_BYTES_MAX (64u << 10) // of a thread's stack

// Whether an unnamed area is behind a guard: an inaccessible one that is as small as guards are.
// The unused tails of arenas are inaccessible, too, but larger.
bool memory_areas_is_guarded(const struct memory_areas *areas, size_t index);

// Return a memory_source on an open /proc/PID/mem; `context` points to the descriptor.
bool memory_read(void *context, uint64_t address, void *out, size_t size_bytes);

// Return a page_source on an open /proc/PID/pagemap; `context` points to the descriptor.
bool pagemap_read(void *context, uint64_t first_page, size_t count, uint64_t *bits);
