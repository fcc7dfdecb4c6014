// SPDX-License-Identifier: MIT
// slow_plugin: takes the loader long, for two_loaders.c: 16,384 pointers to fill in, in memory that
// is read-only afterwards. Two functions alternate, so that the loader's cache of the last lookup
// never helps.
#include <stdlib.h>
#include <string.h>

#define TWO  (void *)abs, (void *)strlen
#define FOUR TWO, TWO
#define P16  FOUR, FOUR, FOUR, FOUR
#define P64  P16, P16, P16, P16
#define P256 P64, P64, P64, P64
#define P1K  P256, P256, P256, P256
#define P4K  P1K, P1K, P1K, P1K

extern void *const slow_plugin_pointers[16384];

void *const slow_plugin_pointers[16384] = {P4K, P4K, P4K, P4K};
