// SPDX-License-Identifier: MIT
// forgiven: leaks of which some are known.
//   forgotten   10 blocks of 100 bytes
//   lost        5 blocks of 200 bytes
#include <cstdlib>

#define KEEP __attribute__((noinline, noclone))

static void *volatile sink;

KEEP static void forgotten()
{
    for (int i = 0; i < 10; i++) {
        sink = malloc(100);
    }
}

KEEP static void lost()
{
    for (int i = 0; i < 5; i++) {
        sink = malloc(200);
    }
}

int main()
{
    forgotten();
    lost();
    return 0;
}
