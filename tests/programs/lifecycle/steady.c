// SPDX-License-Identifier: MIT
// steady ROUNDS: a short model of a server: always 4096 blocks. Each round frees a random one of
// them and allocates it again with a random size, from one of 16 stacks. Every 64th round allocates
// a block that only its function uses. For tests of the cost of a longer run.
#include <stdint.h>
#include <stdlib.h>

enum {
    LIVE = 4096,
    LEVELS = 4
};

static uint64_t random_state = 88172645463325252ull;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void *even(unsigned path, int level, size_t size);
static void *odd(unsigned path, int level, size_t size);

static void *descend(unsigned path, int level, size_t size)
{
    if (level == 0) {
        return malloc(size);
    }
    return (path & 1 ? odd : even)(path >> 1, level - 1, size);
}

static __attribute__((noinline)) void *even(unsigned path, int level, size_t size)
{
    return descend(path, level, size);
}

static __attribute__((noinline)) void *odd(unsigned path, int level, size_t size)
{
    return descend(path, level, size);
}

int main(int count, char **arguments)
{
    static void *live[LIVE];
    if (count != 2) {
        return 2;
    }
    const long rounds = strtol(arguments[1], NULL, 10);
    for (unsigned path = 0; path < 1u << LEVELS; path++) {
        live[path] = descend(path, LEVELS, 16); // every stack is known from here on
    }
    for (long i = 0; i < rounds; i++) {
        const uint64_t chance = next_random();
        void **place = &live[chance % LIVE];
        free(*place);
        *place =
            descend((unsigned)(chance >> 20) % (1u << LEVELS), LEVELS, 16 + (chance >> 40) % 2000);
        if (i % 64 == 0) {
            free(descend((unsigned)(chance >> 30) % (1u << LEVELS), LEVELS, 40));
        }
    }
    return 0;
}
