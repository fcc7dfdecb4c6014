// SPDX-License-Identifier: MIT
// around_plain: a library without unwind tables, in the middle of the stacks of around.c.
#include <stddef.h>
#include <string.h>

void *around_plain(void *(*inner)(size_t size), size_t size);

void *around_plain(void *(*inner)(size_t size), size_t size)
{
    void *block = inner(size);
    memset(block, 3, size);
    return block;
}
