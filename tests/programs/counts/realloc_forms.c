// SPDX-License-Identifier: MIT
// TRUTH: allocations=6 frees=5 allocated_bytes=1210 temporary=3 peak_bytes=1000
// TRUTH: live_bytes=70 live_blocks=1
//
// realloc that allocates, grows, shrinks and frees. A successful one is an allocation of the new
// size and a free of the old. A failed one does not count, and the old block stays.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int main(void)
{
    char *p = realloc(NULL, 10);
    p = realloc(p, 1000); // the 10 bytes were temporary
    p = realloc(p, 20);   // so were the 1000
    p = realloc(p, 0);    // a free in glibc, and the 20 were temporary
    if (p != NULL) {
        return 1;
    }
    char *q = malloc(50);
    char *r = malloc(60);
    q = realloc(q, 70);
    volatile size_t impossible = SIZE_MAX / 2;
    errno = 0;
    char *s = realloc(r, impossible);
    if (s != NULL || errno != ENOMEM) {
        return 2;
    }
    free(r);
    return q == NULL;
}
