// SPDX-License-Identifier: MIT
// endless: argv[1] pairs of malloc and free, then "done"; to be run while its recorder dies.
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const unsigned long pairs = strtoul(argv[argc - 1], NULL, 10);
    for (unsigned long i = 0; i < pairs; i++) {
        free(malloc(i % 1000));
    }
    return write(1, "done\n", 5) == 5 ? 0 : 1;
}
