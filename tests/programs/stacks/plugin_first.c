// SPDX-License-Identifier: MIT
// plugin_first: the first plugin of plugins.c; its twin has the same layout and other names.
#include <stdlib.h>
#include <string.h>

void *plugin_entry(size_t size);

static __attribute__((noinline)) void *made_by_first(size_t size)
{
    void *block = malloc(size);
    memset(block, 0, size);
    return block;
}

void *plugin_entry(size_t size)
{
    void *block = made_by_first(size);
    memset(block, 1, size);
    return block;
}
