// SPDX-License-Identifier: MIT
// Three functions inlined into each other, then a plain call, a static function and a weak alias.
// Truth: the call of malloc in outer_most() is at the line marked [allocate], inside third(),
// called at [third], inside second(), called at [second], inside first(), called at [first], in
// outer_most().
#include <stdlib.h>

#define INLINED static inline __attribute__((always_inline))
#define OWN     __attribute__((noinline))

INLINED void *third(size_t size)
{
    return malloc(size); // [allocate]
}

INLINED void *second(size_t size)
{
    void *block = third(size + 1); // [third]
    __asm__ volatile("" : : "r"(block));
    return block;
}

INLINED void *first(size_t size)
{
    return second(size * 2); // [second]
}

OWN void *outer_most(size_t size)
{
    void *block = first(size); // [first]
    __asm__ volatile("" : : "r"(block));
    return block;
}

static OWN size_t count_digits(const char *text)
{
    size_t count = 0;
    for (; *text != 0; text++) {
        count += *text >= '0' && *text <= '9';
    }
    return count;
}

__attribute__((weak, alias("outer_most"))) void *__private_name(size_t size);

int main(int argc, char **argv)
{
    void *block = outer_most(count_digits(argv[argc - 1]));
    free(block);
    return 0;
}
