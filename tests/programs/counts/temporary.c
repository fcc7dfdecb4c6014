// SPDX-License-Identifier: MIT
// TRUTH: allocations=1009 frees=1008 allocated_bytes=16098 temporary=1006 peak_bytes=40
// TRUTH: live_bytes=10 live_blocks=1
//
// A temporary allocation is freed by the next event of its thread. Freeing NULL is not an event. A
// realloc of the block is its free.
#include <stdlib.h>

int main(void)
{
    void *alone = malloc(10); // temporary
    free(alone);

    void *outer = malloc(10); // not: the next event is another allocation. Leaked.
    void *inner = malloc(20); // temporary
    free(inner);

    void *first = malloc(10);  // not
    void *second = malloc(20); // not: the next event is the free of the first
    free(first);
    free(second);

    void *beside_null = malloc(1); // temporary
    free(NULL);
    free(beside_null);

    void *grown = malloc(2);   // temporary
    grown = realloc(grown, 5); // temporary
    free(grown);

    void *cleared = calloc(4, 5); // temporary
    free(cleared);

    for (int i = 0; i < 1000; i++) { // all temporary
        void *text = malloc(16);
        free(text);
    }
    return outer == NULL;
}
