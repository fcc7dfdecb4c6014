// SPDX-License-Identifier: MIT
// shared_part: a shared library that shared_user.c is linked with.
#include <stdlib.h>
#include <string.h>

void *chosen_point(size_t size);
void *library_outer(void *(*call)(size_t), size_t size);

__attribute__((noinline)) void *chosen_point(size_t size)
{
    void *block = malloc(size);
    memset(block, 0, size);
    return block;
}

static __attribute__((noinline)) void *library_inner(void *(*call)(size_t), size_t size)
{
    void *block = call(size);
    memset(block, 1, size);
    return block;
}

void *library_outer(void *(*call)(size_t), size_t size)
{
    void *block = library_inner(call, size);
    memset(block, 2, size);
    return block;
}
