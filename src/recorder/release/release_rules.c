// SPDX-License-Identifier: MIT
#include "recorder/release/release_rules.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"
#include "recorder/release/block_extent.h"

enum {
    GLIBC_HEAD = 16,      // of a chunk, before its block; half of it may be of the chunk before
    GLIBC_FREE_HEAD = 48, // of a free chunk: what malloc_trim keeps of it
    JEMALLOC_SMALL_MAX = 14336,
    JEMALLOC_QUANTUM = 16,
    TCMALLOC_PAGE = 8192,
    TCMALLOC_SMALL_MAX = 256 << 10,
    TCMALLOC_ALIGN = 16,
    TCMALLOC_MOVED_BYTES = 64 << 10, // between caches at once
    TCMALLOC_MOVED_MAX = 32,         // blocks
    TCMALLOC_WASTE = 8,              // a span wastes at most that part of itself
    MIMALLOC_PAGE = 64 << 10,
};

enum release_rule release_rule_of(const char *allocator, const char *path)
{
    static const struct {
        const char *name;
        const char *file; // how its library's name begins
        enum release_rule rule;
    } rules[] = {
        {"libc", "libc.so", RELEASE_GLIBC},
        {"libc", "libc-2.", RELEASE_GLIBC},
        {"jemalloc", "libjemalloc", RELEASE_JEMALLOC},
        {"tcmalloc", "libtcmalloc", RELEASE_TCMALLOC},
        {"mimalloc", "libmimalloc", RELEASE_MIMALLOC},
    };
    const char *file = path_file_name(path);
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        const bool is_file = strncmp(file, rules[i].file, strlen(rules[i].file)) == 0;
        if (is_file || (i > 1 && strcmp(allocator, rules[i].name) == 0)) {
            return rules[i].rule;
        }
    }
    return RELEASE_BY_PAGE;
}

static struct address_range aligned(uint64_t start, uint64_t end, uint64_t unit)
{
    return (struct address_range){.start = start - start % unit,
                                  .end = end % unit == 0 ? end : end - end % unit + unit};
}

static struct address_range span_of_glibc(uint64_t address, uint64_t size_bytes)
{
    const uint64_t start = address - GLIBC_HEAD;
    return (struct address_range){.start = start,
                                  .end = start + block_chunk_bytes(size_bytes) + GLIBC_FREE_HEAD};
}

// Return the size of jemalloc's class for small blocks: four classes for each doubling.
static uint64_t jemalloc_class(uint64_t size_bytes)
{
    uint64_t step = JEMALLOC_QUANTUM;
    if (size_bytes <= JEMALLOC_QUANTUM / 2) {
        return JEMALLOC_QUANTUM / 2;
    }
    while (size_bytes > 8 * step) {
        step *= 2;
    }
    return (size_bytes + step - 1) / step * step;
}

// Return the start of the span of `unit`s that holds the block: equal regions fill it from its
// start, so the block is a multiple of their size behind it. The nearest start that fits is taken;
// of another one it is not known that it is one. 0: none fits.
static uint64_t
start_of_regions(uint64_t address, uint64_t region_bytes, uint64_t span_bytes, uint64_t unit)
{
    uint64_t start = address - address % unit;
    while (address - start < span_bytes) {
        if ((address - start) % region_bytes == 0) {
            return start;
        }
        start -= unit;
    }
    return 0;
}

// A slab has the fewest pages that regions fill without a rest. It begins with a page, and the
// block is a multiple of the class behind it: only one page of those before the block fits.
static struct address_range span_of_jemalloc(uint64_t address, uint64_t size_bytes)
{
    const uint64_t class = jemalloc_class(size_bytes);
    uint64_t slab_bytes = page_bytes();
    if (size_bytes > JEMALLOC_SMALL_MAX) {
        return aligned(address, address + size_bytes, page_bytes());
    }
    while (slab_bytes % class != 0) {
        slab_bytes += page_bytes();
    }
    const uint64_t start = start_of_regions(address, class, slab_bytes, page_bytes());
    return start != 0 ? (struct address_range){.start = start, .end = start + slab_bytes}
                      : aligned(address, address + size_bytes, page_bytes());
}

static uint64_t tcmalloc_alignment(uint64_t size_bytes)
{
    uint64_t alignment = TCMALLOC_ALIGN;
    while (size_bytes >= TCMALLOC_ALIGN * alignment) {
        alignment *= 2;
    }
    return min_u64(alignment, TCMALLOC_PAGE);
}

// Return the size of the span for regions of a class: enough for a quarter of what moves at once.
static uint64_t tcmalloc_span_bytes(uint64_t class_bytes)
{
    const uint64_t moved =
        min_u64(max_u64(TCMALLOC_MOVED_BYTES / class_bytes, 2), TCMALLOC_MOVED_MAX);
    uint64_t span_bytes = 0;
    do {
        span_bytes += TCMALLOC_PAGE;
        while (span_bytes % class_bytes > span_bytes / TCMALLOC_WASTE) {
            span_bytes += TCMALLOC_PAGE;
        }
    } while (span_bytes / class_bytes < moved / 4);
    return span_bytes;
}

// Neighbour classes are one, the larger, if equal spans have room for equally many of either.
static struct address_range span_of_tcmalloc(uint64_t address, uint64_t size_bytes)
{
    if (size_bytes > TCMALLOC_SMALL_MAX) {
        return aligned(address, address + size_bytes, TCMALLOC_PAGE);
    }
    const uint64_t step = tcmalloc_alignment(max_u64(size_bytes, 1));
    uint64_t class_bytes = max_u64((size_bytes + step - 1) / step * step, TCMALLOC_ALIGN);
    const uint64_t span_bytes = tcmalloc_span_bytes(class_bytes);
    for (uint64_t next = class_bytes + tcmalloc_alignment(class_bytes);
         next <= TCMALLOC_SMALL_MAX && tcmalloc_span_bytes(next) == span_bytes &&
         span_bytes / next == span_bytes / class_bytes;
         next = class_bytes + tcmalloc_alignment(class_bytes)) {
        class_bytes = next;
    }
    const uint64_t start = start_of_regions(address, class_bytes, span_bytes, TCMALLOC_PAGE);
    return start != 0 ? (struct address_range){.start = start, .end = start + span_bytes}
                      : aligned(address, address + size_bytes, TCMALLOC_PAGE);
}

struct address_range release_span_of(enum release_rule rule, uint64_t address, uint64_t size_bytes)
{
    switch (rule) {
    case RELEASE_GLIBC:
        return span_of_glibc(address, size_bytes);
    case RELEASE_JEMALLOC:
        return span_of_jemalloc(address, size_bytes);
    case RELEASE_TCMALLOC:
        return span_of_tcmalloc(address, size_bytes);
    case RELEASE_MIMALLOC:
        return aligned(address, address + size_bytes, MIMALLOC_PAGE);
    case RELEASE_BY_PAGE:
        break;
    }
    return aligned(address, address + max_u64(size_bytes, 1), page_bytes());
}
