// SPDX-License-Identifier: MIT
// own_malloc: an executable that defines and exports its own malloc, like one with a static
// jemalloc.
#include <stddef.h>
#include <unistd.h>

static char g_room[1 << 20];
static size_t g_used;

void *malloc(size_t size)
{
    void *block = g_room + g_used;
    g_used += (size + 15) & ~(size_t)15;
    return g_used <= sizeof(g_room) ? block : NULL;
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

void *realloc(void *block, size_t size)
{
    (void)block;
    return malloc(size);
}

int main(void)
{
    return malloc(100) != NULL && write(STDOUT_FILENO, "own malloc\n", 11) == 11 ? 0 : 1;
}
