// SPDX-License-Identifier: MIT
// apart_part: a library for apart.c, which loads it into linker namespaces of their own.
#include <stdlib.h>

void *apart_make(void);

static void *g_early;

__attribute__((constructor)) static void apart_begin(void)
{
    g_early = malloc(77);
}

__attribute__((destructor)) static void apart_end(void)
{
    free(g_early);
}

// Allocate 100 and 50 bytes, free the former and return the latter.
void *apart_make(void)
{
    void *freed = malloc(100);
    void *kept = malloc(50);
    free(freed);
    return kept;
}
