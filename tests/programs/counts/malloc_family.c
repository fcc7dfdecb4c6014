// SPDX-License-Identifier: MIT
// TRUTH: allocations=4 frees=3 allocated_bytes=1000 temporary=0 peak_bytes=1000
// TRUTH: live_bytes=100 live_blocks=1
//
// Each plain entry point once. Asking for the usable size, trimming and tuning do not count.
#include <malloc.h>
#include <stdlib.h>

int main(void)
{
    void *a = malloc(100);
    void *b = calloc(10, 20);
    void *c = realloc(NULL, 300);
    void *d = reallocarray(NULL, 4, 100);
    if (malloc_usable_size(a) < 100 || malloc_usable_size(b) < 200) {
        return 1;
    }
    malloc_trim(0);
    mallopt(M_ARENA_MAX, 2);
    free(b);
    free(c);
    free(d);
    return a == NULL;
}
