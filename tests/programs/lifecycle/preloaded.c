// SPDX-License-Identifier: MIT
// TRUTH: allocations=3 frees=0 allocated_bytes=241 temporary=0 peak_bytes=241
// TRUTH: live_bytes=241 live_blocks=3
//
// Run with own_preload.c in LD_PRELOAD: that library allocates two of the blocks.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_replaced(void)
{
    const char *name = getlogin();
    return name != NULL && strcmp(name, "own preload") == 0;
}

int main(void)
{
    void *own = malloc(87);
    return own != NULL && is_replaced() && is_replaced() ? 0 : 1;
}
