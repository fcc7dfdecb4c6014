// SPDX-License-Identifier: MIT
// TRUTH: allocations=4 frees=2 allocated_bytes=2356 temporary=1 peak_bytes=2356
// TRUTH: live_bytes=1256 live_blocks=2
//
// Each aligned entry point that valgrind knows too. posix_memalign with an alignment that is not a
// power of two fails and does not change its out parameter.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

static int misaligned(const void *block, uintptr_t alignment)
{
    return block == NULL || (uintptr_t)block % alignment != 0;
}

int main(void)
{
    void *posix = NULL;
    if (posix_memalign(&posix, 64, 1000) != 0 || misaligned(posix, 64)) {
        return 1;
    }
    void *untouched = &posix;
    volatile size_t odd = 3;
    if (posix_memalign(&untouched, odd, 10) != EINVAL || untouched != &posix) {
        return 2;
    }
    void *c11 = aligned_alloc(128, 256);
    void *old = memalign(4096, 500);
    void *page = valloc(600);
    if (misaligned(c11, 128) || misaligned(old, 4096) || misaligned(page, 4096)) {
        return 3;
    }
    free(page); // temporary
    free(old);
    return 0;
}
