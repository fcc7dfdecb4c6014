// SPDX-License-Identifier: MIT
// TRUTH: allocations=7 frees=5 allocated_bytes=416400 temporary=1 peak_bytes=215000
// TRUTH: live_bytes=1400 live_blocks=2
//
// Two maxima, the second higher, then a long tail below it; a realloc at the top replaces its
// block, so that old and new size never count at once.
#include <stdlib.h>

int main(void)
{
    char *base = malloc(10000);
    char *low = malloc(100000);
    char *between = malloc(5000); // the first maximum: 115000
    free(low);
    char *high = malloc(100000);
    high = realloc(high, 200000); // the second: 215000; the 100000 were temporary
    free(between);
    free(base);
    free(high);
    char *tail = malloc(1000);
    char *end = malloc(400);
    return tail == NULL || end == NULL;
}
