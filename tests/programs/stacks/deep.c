// SPDX-License-Identifier: MIT
// deep DEPTH: a recursion of that depth with a chosen point (size 7501) at its bottom.
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline)) void *at_the_bottom(void)
{
    void *block = malloc(7501);
    memset(block, 0, 7501);
    return block;
}

static __attribute__((noinline)) int descend(int depth)
{
    if (depth == 0) {
        return at_the_bottom() == NULL;
    }
    return descend(depth - 1) + (depth < 0);
}

int main(int count, char **arguments)
{
    return count == 2 ? descend((int)strtol(arguments[1], NULL, 10)) : 2;
}
