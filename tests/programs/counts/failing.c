// SPDX-License-Identifier: MIT
// TRUTH: allocations=2 frees=2 allocated_bytes=80 temporary=1 peak_bytes=80
// TRUTH: live_bytes=0 live_blocks=0
//
// Requests that must fail, at every entry point; calloc and reallocarray also with products that
// overflow. Each returns NULL and ENOMEM, and none counts.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

static volatile size_t huge = SIZE_MAX / 2 + 1;
static volatile size_t hugest = SIZE_MAX;

static int refused(const void *block)
{
    const int is_refused = block == NULL && errno == ENOMEM;
    errno = 0;
    return is_refused;
}

int main(void)
{
    void *kept = malloc(32);
    void *other = malloc(48);
    void *out = NULL;
    errno = 0;
    if (!refused(malloc(huge)) || !refused(malloc(hugest))) {
        return 1;
    }
    if (!refused(calloc(huge, 4)) || !refused(calloc(huge, 1))) {
        return 2;
    }
    if (!refused(reallocarray(kept, huge, 4)) || !refused(realloc(other, huge))) {
        return 3;
    }
    if (posix_memalign(&out, 64, huge) != ENOMEM || out != NULL) {
        return 4;
    }
    errno = 0;
    if (!refused(aligned_alloc(64, huge)) || !refused(memalign(64, huge))) {
        return 5;
    }
    free(other); // no call succeeded in between, so this block was temporary
    free(kept);
    return 0;
}
