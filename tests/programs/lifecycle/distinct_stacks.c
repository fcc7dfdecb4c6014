// SPDX-License-Identifier: MIT
// distinct_stacks STACKS ROUNDS: allocates and frees a block at the end of each of STACKS (at most
// 4^10) distinct call stacks, ROUNDS times. A stack spells its number in base 4, lowest digit
// first: ten calls, each of one of four functions. So each stack has its own leaf, and there is one
// inner frame for each prefix of a number.
#include <stdlib.h>

#define DIGITS 10

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

int main(int count, char **arguments)
{
    if (count != 3) {
        return 2;
    }
    const unsigned long stacks = strtoul(arguments[1], NULL, 10);
    const unsigned long rounds = strtoul(arguments[2], NULL, 10);
    for (unsigned long i = 0; i < stacks * rounds; i++) {
        const unsigned long path = i % stacks;
        ways[path % 4](path / 4, DIGITS - 1);
    }
    return 0;
}
