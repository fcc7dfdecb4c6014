// SPDX-License-Identifier: MIT
// junk_frames: code without unwind tables keeps data in the frame pointer's register. That data
// looks like frames; their return addresses are random numbers, addresses that no program has, and
// addresses inside functions that have tables, by turns.
//
// Its argument is the seed. It allocates BLOCKS blocks of BLOCK_BYTES, and frees each at once.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS      20000u
#define BLOCK_BYTES 512u
#define FRAMES      32u

// Call function(size) with `frames` as the frame pointer.
void *call_without_table(size_t size, void *(*function)(size_t), const void *frames);

struct frame {
    const struct frame *caller;
    uint64_t ret_addr;
};

static uint64_t g_random;

static uint64_t draw(void)
{
    g_random = g_random * 6364136223846793005u + 1442695040888963407u;
    return g_random >> 32 | g_random << 32;
}

static uint64_t junk(void)
{
    const uint64_t number = draw();
    switch (number % 5) {
    case 0:
        return number >> (draw() % 64);
    case 1:
        return (uint64_t)0xfff << 52 | (number >> (draw() % 64));
    case 2:
        return (uint64_t)(uintptr_t)&printf + number % 4096;
    case 3:
        return (uint64_t)(uintptr_t)&junk + number % 256;
    default:
        return (uint64_t)1 << (number >> 8) % 64;
    }
}

int main(int count, char **arguments)
{
    if (count != 2) {
        return 1;
    }
    g_random = strtoull(arguments[1], NULL, 10);
    static volatile uint64_t ret_addrs[FRAMES];
    for (unsigned block = 0; block < BLOCKS; block++) {
        // The outer frames stay longer than the inner ones, as in true stacks.
        const unsigned changed = (unsigned)__builtin_ctz(block | 1u << 20);
        for (unsigned i = 0; i <= changed * 2 && i < FRAMES; i++) {
            ret_addrs[i] = junk();
        }
        volatile struct frame frames[FRAMES];
        for (unsigned i = 0; i < FRAMES; i++) {
            frames[i].caller = (const struct frame *)(i + 1 < FRAMES ? &frames[i + 1] : NULL);
            frames[i].ret_addr = ret_addrs[i];
        }
        free(call_without_table(BLOCK_BYTES, malloc, (const void *)frames));
    }
    return 0;
}
