// SPDX-License-Identifier: MIT
// page: what is the same for pages of every size: 4, 16 and 64 KiB.
//
// Every page begins and ends at a multiple of PAGE_GRAIN. Code in the target counts and steps by
// it and asks for no page size. Parts of shared memory that are mapped, protected or given back
// alone begin at multiples of PAGE_LARGEST. A page of this kernel: host/memory/page_size.h.
//
// Context: T and H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PAGE_GRAIN   ((size_t)4096)
#define PAGE_LARGEST ((size_t)65536)

// Round down to the start of a page of that size.
static inline uint64_t page_start_of(uint64_t address, uint64_t page_bytes)
{
    return address & ~(page_bytes - 1);
}

// Round up to the end of a page of that size; wraps around in the last page.
static inline uint64_t page_end_of(uint64_t address, uint64_t page_bytes)
{
    return page_start_of(address + page_bytes - 1, page_bytes);
}

// Round down to a multiple of the grain.
static inline uint64_t grain_start(uint64_t address)
{
    return page_start_of(address, PAGE_GRAIN);
}

// Round up to a multiple of the grain; wraps around at the end.
static inline uint64_t grain_end(uint64_t address)
{
    return page_end_of(address, PAGE_GRAIN);
}
