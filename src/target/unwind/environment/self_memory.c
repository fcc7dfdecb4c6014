// SPDX-License-Identifier: MIT
#include "target/unwind/environment/self_memory.h"

#include <errno.h>

#include "base/page.h"
#include "base/sys.h"

// Extend [low, high) to the page of `addr`, if that can be read.
static bool cover(struct self_memory *self, uint64_t addr)
{
    if (addr >= self->low && addr < self->high) {
        return true;
    }
    if (!sys_is_readable(addr & ~(uint64_t)7)) {
        return false;
    }
    uint64_t page = grain_start(addr);
    if (page == self->high) {
        self->high += PAGE_GRAIN;
    } else {
        self->low = page;
        self->high = page + PAGE_GRAIN;
    }
    return true;
}

static bool self_memory_read(struct memory_reader *reader, uint64_t addr, uint64_t *word)
{
    struct self_memory *self = (struct self_memory *)reader;
    uint64_t last = addr + sizeof(*word) - 1;
    if (last < addr) {
        return false;
    }
    bool is_own = addr >= self->bounds.low && last < self->bounds.top;
    if (!is_own && reader->is_guess) {
        const long copied = sys_copy_own(word, addr, sizeof(*word));
        if (!sys_failed(copied) || copied == -EFAULT) {
            return copied == sizeof(*word);
        }
    }
    if (!is_own && (!cover(self, addr) || !cover(self, last))) {
        return false;
    }
    *word = memory_word(addr);
    return true;
}

struct self_memory self_memory_over(const struct stack_bounds *bounds)
{
    return (struct self_memory){.reader = {.read = self_memory_read}, .bounds = *bounds};
}
