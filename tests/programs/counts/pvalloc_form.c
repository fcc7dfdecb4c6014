// SPDX-License-Identifier: MIT
// TRUTH: allocations=3 frees=2 allocated_bytes=6400 temporary=0 peak_bytes=5700
// TRUTH: live_bytes=700 live_blocks=1
//
// pvalloc counts the requested size, not the whole pages that it returns. In its own file because
// valgrind ends a program that calls it.
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

int main(void)
{
    void *kept = pvalloc(700);
    void *given_back = pvalloc(5000);
    const uintptr_t both = (uintptr_t)kept | (uintptr_t)given_back;
    if (kept == NULL || given_back == NULL || both % 4096 != 0) {
        return 1;
    }
    if (malloc_usable_size(kept) < 4096 || malloc_usable_size(given_back) < 8192) {
        return 2;
    }
    kept = realloc(kept, 0);
    kept = pvalloc(700);
    free(given_back);
    return kept == NULL;
}
