// SPDX-License-Identifier: MIT
#include "target/preload/python/python_memory.h"

#include <stdatomic.h>

#include "base/sys.h"

enum {
    PAGE_SHIFT = 12,
    PAGES = 1024,
};

static _Atomic uint64_t g_pages[PAGES]; // numbers of readable pages, each at its place

bool python_memory_holds(uint64_t addr, uint64_t bytes)
{
    uint64_t last;
    if (__builtin_add_overflow(addr, bytes - 1, &last)) {
        return false;
    }
    for (uint64_t page = addr >> PAGE_SHIFT; page <= last >> PAGE_SHIFT; page++) {
        _Atomic uint64_t *known = &g_pages[page % PAGES];
        // Relaxed: the number guards no other data.
        if (atomic_load_explicit(known, memory_order_relaxed) == page && page != 0) {
            continue;
        }
        if (!sys_is_readable(page << PAGE_SHIFT)) {
            return false;
        }
        atomic_store_explicit(known, page, memory_order_relaxed);
    }
    return true;
}
