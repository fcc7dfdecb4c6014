// SPDX-License-Identifier: MIT
// page_size: the pages of this kernel, 4, 16 or 64 KiB, and rounding to them.
//
// A recorded process has the same kernel, so its pages have the same size.
// Context: H. State: g_page_bits, set before main, and by tests only after that.
#pragma once

#include <stdint.h>

#include "base/page.h"

extern uint32_t g_page_bits; // a page has 2 to this power bytes

static inline uint64_t page_bytes(void)
{
    return (uint64_t)1 << g_page_bits;
}

// Return how many whole pages are in so many bytes, or the number of the page at an address.
static inline uint64_t page_count(uint64_t bytes)
{
    return bytes >> g_page_bits;
}

// Return the bytes before an address on its page.
static inline uint64_t page_rest(uint64_t address)
{
    return address & (page_bytes() - 1);
}

// Round down to the start of a page.
static inline uint64_t page_start(uint64_t address)
{
    return page_start_of(address, page_bytes());
}

// Round up to the end of a page; wraps around in the last page.
static inline uint64_t page_end(uint64_t address)
{
    return page_end_of(address, page_bytes());
}
