// SPDX-License-Identifier: MIT
// rare_stacks STACKS: allocates and frees a block of 40 bytes in each of STACKS (at most 4^10)
// distinct call stacks, in which a number is spelled in base 4, as in distinct_stacks.c. Between
// them others allocate again and again:
//
//   often   100 bytes after each 20th of these blocks       STACKS / 20 blocks, kept
//   later   200 bytes after each 20th of the second half    STACKS / 40 blocks, kept
#include <stdlib.h>

#define DIGITS 10
#define RARE   20

static void north(unsigned long path, int digits);
static void east(unsigned long path, int digits);
static void south(unsigned long path, int digits);
static void west(unsigned long path, int digits);

static void (*const ways[])(unsigned long path, int digits) = {north, east, south, west};

static inline __attribute__((always_inline)) void go_on(unsigned long path, int digits)
{
    if (digits == 0) {
        free(malloc(40));
        return;
    }
    ways[path % 4](path / 4, digits - 1);
    __asm__ volatile(""); // prevents a tail call
}

static void north(unsigned long path, int digits)
{
    go_on(path, digits);
}

static void east(unsigned long path, int digits)
{
    go_on(path, digits);
}

static void south(unsigned long path, int digits)
{
    go_on(path, digits);
}

static void west(unsigned long path, int digits)
{
    go_on(path, digits);
}

static void *g_kept;

static __attribute__((noinline)) void keep(void **block)
{
    *block = g_kept;
    g_kept = block;
}

static __attribute__((noinline)) void often(void)
{
    keep(malloc(100));
}

static __attribute__((noinline)) void later(void)
{
    keep(malloc(200));
}

int main(int count, char **arguments)
{
    if (count != 2) {
        return 2;
    }
    const unsigned long stacks = strtoul(arguments[1], NULL, 10);
    for (unsigned long i = 0; i < stacks; i++) {
        ways[i % 4](i / 4, DIGITS - 1);
        if (i % RARE == RARE - 1) {
            often();
        }
        if (i % RARE == RARE - 1 && i >= stacks / 2) {
            later();
        }
    }
    return 0;
}
