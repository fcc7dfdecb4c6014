// SPDX-License-Identifier: MIT
// swings DEPTH: 600 allocations at the bottom of a recursion of that depth. Between two of them it
// returns over some frames, often few and sometimes nearly all, and descends again by other calls.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 600u

static struct {
    uint32_t depth;
    uint32_t turn; // the level from which it descends again
    uint32_t left;
    uint64_t seed;
} g_swings = {.left = BLOCKS, .seed = 1};

static uint32_t draw(uint32_t below)
{
    g_swings.seed = g_swings.seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)((g_swings.seed >> 33) % below);
}

static __attribute__((noinline)) void at_the_bottom(void)
{
    void *block = malloc(100);
    memset(block, 0, 100);
    free(block);
    const uint32_t frames = draw(20) == 0 ? draw(g_swings.depth) : draw(6);
    g_swings.turn = g_swings.depth - frames;
    g_swings.left--;
}

static __attribute__((noinline)) int descend(uint32_t level)
{
    int sum = 0;
    do {
        if (level == g_swings.depth) {
            at_the_bottom();
        } else if (draw(2) != 0) {
            sum += descend(level + 1);
        } else {
            sum -= descend(level + 1);
        }
    } while (g_swings.left > 0 && level <= g_swings.turn);
    return sum;
}

int main(int count, char **arguments)
{
    g_swings.depth = count == 2 ? (uint32_t)strtoul(arguments[1], NULL, 10) : 100;
    return descend(0) != 0;
}
