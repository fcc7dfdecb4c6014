// SPDX-License-Identifier: MIT
// around_part: the library that around.c opens.
#include <stdlib.h>
#include <string.h>

typedef void *inner_function(size_t size);
typedef void *middle_function(inner_function *inner, size_t size);

void *around_outer(middle_function *middle, size_t size);

static __attribute__((noinline)) void *around_inner(size_t size)
{
    void *block = malloc(size);
    memset(block, 1, size);
    return block;
}

void *around_outer(middle_function *middle, size_t size)
{
    void *block = middle(around_inner, size);
    memset(block, 2, size);
    return block;
}
