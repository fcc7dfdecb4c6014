// SPDX-License-Identifier: MIT
// own_preload: a library that a test adds to LD_PRELOAD beside cairn's. It replaces getlogin and
// allocates one block of 77 bytes at each call, so that a lost preload shows in the totals.
#include <stdlib.h>

void *g_own_preload_block;

char *getlogin(void);

char *getlogin(void)
{
    static char name[] = "own preload";
    g_own_preload_block = malloc(77);
    return name;
}
