// SPDX-License-Identifier: MIT
// TRUTH: allocations=3 frees=2 allocated_bytes=600 temporary=2 peak_bytes=300
// TRUTH: live_bytes=300 live_blocks=1
//
// lent_address: an executable at a fixed address that takes malloc's address. The linker makes that
// an address in the executable itself, which libraries also use as malloc's.
#include <stdlib.h>

static void *(*volatile g_allocate)(size_t size);
static void (*volatile g_release)(void *block);

int main(void)
{
    g_allocate = malloc;
    g_release = free;
    g_release(g_allocate(100));
    g_release(malloc(200));
    return g_allocate(300) != NULL ? 0 : 1;
}
