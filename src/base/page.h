// SPDX-License-Identifier: MIT
// page: the smallest page of any kernel that cairn runs on, and rounding to it.
//
// Context: T and H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES ((size_t)4096)

// Round down to the start of a page of this kernel (AT_PAGESZ), 4, 16 or 64 KiB.
static inline uint64_t page_start_of(uint64_t address, uint64_t page_bytes)
{
    return address & ~(page_bytes - 1);
}

// Round down to the start of a page.
static inline uint64_t page_start(uint64_t address)
{
    return page_start_of(address, PAGE_BYTES);
}

// Round up to the end of a page; wraps around in the last page.
static inline uint64_t page_end(uint64_t address)
{
    return page_start(address + PAGE_BYTES - 1);
}
