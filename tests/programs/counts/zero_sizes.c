// SPDX-License-Identifier: MIT
// TRUTH: allocations=6 frees=5 allocated_bytes=0 temporary=0 peak_bytes=0
// TRUTH: live_bytes=0 live_blocks=1
//
// A request for zero bytes is an ordinary allocation: glibc returns a block that must be freed.
#include <stdlib.h>

int main(void)
{
    void *blocks[6] = {malloc(0),        calloc(0, 5),         calloc(5, 0),
                       realloc(NULL, 0), aligned_alloc(64, 0), reallocarray(NULL, 0, 8)};
    for (int i = 0; i < 6; i++) {
        if (blocks[i] == NULL) {
            return i + 1;
        }
    }
    for (int i = 0; i < 5; i++) {
        free(blocks[i]);
    }
    return 0;
}
