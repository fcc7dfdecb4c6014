// SPDX-License-Identifier: MIT
// keeper: a module whose constructor keeps 12345 bytes, which belong to the module, not the loader.
#include <stdlib.h>

static void *volatile kept;

__attribute__((constructor)) static void keep(void)
{
    kept = malloc(12345);
    kept = NULL;
}
