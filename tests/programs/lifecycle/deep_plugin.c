// SPDX-License-Identifier: MIT
// deep_plugin: the plugin of deep_bind.c.
#include <stdlib.h>

void *deep_plugin_make(size_t size);
void deep_plugin_free(void *block);

void *deep_plugin_make(size_t size)
{
    return malloc(size);
}

void deep_plugin_free(void *block)
{
    free(block);
}
