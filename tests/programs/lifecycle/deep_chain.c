// SPDX-License-Identifier: MIT
// deep_chain: a plugin for deep_bind.c whose functions are in a library that it depends on.
#include <stddef.h>

void *deep_plugin_make(size_t size);
void *deep_chain(size_t size);

void *deep_chain(size_t size)
{
    return deep_plugin_make(size);
}
