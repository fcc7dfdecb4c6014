// SPDX-License-Identifier: MIT
// plugin: built twice, as plugin_a and plugin_b, with functions of other names at the same places.
#include <stdlib.h>

void *PLUGIN_FUNCTION(size_t size);
void *PLUGIN_FUNCTION(size_t size)
{
    void *volatile block = malloc(size);
    return block;
}

void *plugin_entry(size_t size);
void *plugin_entry(size_t size)
{
    void *volatile block = PLUGIN_FUNCTION(size);
    return block;
}
