// SPDX-License-Identifier: MIT
// early: a library whose constructor allocates 3131 bytes and whose destructor frees them and
// allocates 3232: before cairn's constructor or after everybody's, by its place in LD_PRELOAD.
#include <stdlib.h>

static void *volatile block;

__attribute__((constructor)) static void begin(void)
{
    block = malloc(3131);
}

__attribute__((destructor)) static void end(void)
{
    free(block);
    block = malloc(3232);
}
