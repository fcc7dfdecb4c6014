// SPDX-License-Identifier: MIT
// A module whose constructor keeps 12345 bytes, which are the module's, not the loader's.
#include <stdlib.h>

static void *volatile kept;

__attribute__((constructor)) static void keep(void)
{
    kept = malloc(12345);
    kept = NULL;
}
