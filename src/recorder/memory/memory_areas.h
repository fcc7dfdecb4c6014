// SPDX-License-Identifier: MIT
// memory_areas: the memory map of a process, as /proc/PID/smaps and pagemap tell it.
//
// smaps is read whole and in one go, but the process runs on meanwhile: the kernel gives a piece at
// a time. So what a look adds up to is the sum of its own lines, not what another file says.
// Context: H. The texts are the kernel's, but a program chooses names and sizes; both are bounded.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"

struct memory_area {
    uint64_t start;
    uint64_t end;
    uint64_t rss_bytes;
    uint64_t swap_bytes;
    size_t path;        // offset in memory_areas.text; what stands there ends with a zero byte
    bool is_accessible; // readable, writable or executable
    bool is_shared;
};

DEFINE_VEC(memory_area_vec, struct memory_area);

// Zeroed is empty and valid.
struct memory_areas {
    struct memory_area_vec areas; // in order of their addresses
    struct strbuf text;
};

// Takes apart what smaps says; `text` becomes ours and is changed. ERR_CORRUPT: it is no smaps.
// Then areas are whole pages, and in order; none has more in memory, or in swap, than its size.
enum err memory_areas_parse(struct strbuf *text, struct memory_areas *out) MUST_USE;

// Reads those of a process. ERR_NOT_FOUND: it is gone; other errors: it may not be read.
enum err memory_areas_read(pid_t pid, struct memory_areas *out) MUST_USE;

void memory_areas_release(struct memory_areas *areas);

// "" for an area without a name.
const char *memory_area_path(const struct memory_areas *areas, const struct memory_area *area);

// Asks which pages are there. `read` sets bit i of `bits` if page `first` + i is resident; false if
// that cannot be said. The caller has zeroed (count + 63) / 64 words.
struct page_source {
    bool (*read)(void *context, uint64_t first_page, size_t count, uint64_t *bits);
    void *context;
};

// A page_source on an open /proc/PID/pagemap: `context` points to the descriptor.
bool pagemap_read(void *context, uint64_t first_page, size_t count, uint64_t *bits);
