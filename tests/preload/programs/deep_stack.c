// SPDX-License-Identifier: MIT
// deep_stack: allocates 700 bytes under argv[1] recursive calls.
#include <stdlib.h>

__attribute__((noinline)) static void *recurse(unsigned depth)
{
    void *volatile block = depth == 0 ? malloc(700) : recurse(depth - 1);
    return block;
}

int main(int argc, char **argv)
{
    free(recurse((unsigned)strtoul(argv[argc - 1], NULL, 10)));
    return 0;
}
