// SPDX-License-Identifier: MIT
// ipa_ra: callers that gcc compiles together with their allocator, and to which it gives registers
// that the allocator leaves alone (-fipa-ra), general ones and vectors. Nothing here says which:
// kept_registers.c is the program that checks each of them.
//
// Executes the commands that it reads, one per line, and writes "done" after each.
//
//   r   a round: 1000 calls of own_malloc(48) and of own_free, with 6 integers and 4 numbers of
//       floating point that live across the calls, compared with what they were
//   p   nothing
//   q   returns from main, with status 1 if a value has changed
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

enum {
    CALLS = 1000,
    BLOCKS = 4096,
    BLOCK_BYTES = 64,
};

static _Alignas(64) unsigned char g_pool[BLOCKS * BLOCK_BYTES];
static uint64_t g_allocations;
static uint64_t g_frees;
static volatile uint64_t g_seed = 0x9e3779b97f4a7c15;

__attribute__((noinline, noclone)) void *own_malloc(size_t size)
{
    (void)size;
    return g_pool + g_allocations++ % BLOCKS * BLOCK_BYTES;
}

__attribute__((noinline, noclone)) void own_free(void *block)
{
    *(unsigned char *)block = 0xdd;
    g_frees++;
}

// Return a sum of all values, each of which is used before and after the calls.
__attribute__((noinline, noclone)) uint64_t work(uint64_t seed, double x)
{
    const uint64_t a = seed * 3, b = seed ^ 0x5555, c = seed >> 7, d = seed << 9, e = ~seed;
    const double y = x * 1.5, z = x + 7.25, w = x - 3.5;
    unsigned char *block = own_malloc(48);
    block[1] = (unsigned char)(a ^ b ^ c ^ d ^ e ^ seed);
    const double before = x + y * z - w;
    own_free(block);
    return a + 3 * b + 5 * c + 7 * d + 11 * e + 13 * seed + (uint64_t)(before + x * 2 + y + z * w);
}

// The same without calls.
__attribute__((noinline, noclone)) static uint64_t expected(uint64_t seed, double x)
{
    volatile uint64_t a = seed * 3, b = seed ^ 0x5555, c = seed >> 7, d = seed << 9, e = ~seed;
    volatile double y = x * 1.5, z = x + 7.25, w = x - 3.5;
    const double before = x + y * z - w;
    return a + 3 * b + 5 * c + 7 * d + 11 * e + 13 * seed + (uint64_t)(before + x * 2 + y + z * w);
}

static int is_wrong(void)
{
    int wrong = 0;
    for (int i = 0; i < CALLS; i++) {
        const uint64_t seed = g_seed * (uint64_t)(i + 1);
        const double x = (double)(seed >> 40);
        wrong |= work(seed, x) != expected(seed, x);
    }
    return wrong;
}

int main(void)
{
    char command[2];
    int status = 0;
    while (read(0, command, 2) == 2 && command[0] != 'q') {
        status |= command[0] == 'r' && is_wrong();
        (void)!write(1, "done\n", 5);
    }
    return status | (g_allocations != g_frees ? 2 : 0);
}
