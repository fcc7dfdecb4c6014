// SPDX-License-Identifier: MIT
// calls: C stacks. Each chosen point leaks one block with its own size, 7001 and up, by which the
// test finds it in the report and in gdb. Through a callback of libc (qsort), a chain of calls, a
// tail position and a function without a frame pointer and with a large frame.
#include <stdlib.h>
#include <string.h>

void *chosen_point(size_t size);

__attribute__((noinline)) void *chosen_point(size_t size)
{
    void *block = malloc(size);
    memset(block, 0, size);
    return block;
}

static int g_is_first = 1;

static int by_value(const void *a, const void *b)
{
    if (g_is_first) {
        g_is_first = 0;
        chosen_point(7001);
    }
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int inner(volatile char *room, int depth)
{
    room[depth] = 1;
    chosen_point(7002);
    return room[0] + depth;
}

__attribute__((noinline)) static int outer(int depth)
{
    volatile char room[20000];
    room[0] = (char)depth;
    return inner(room, depth) + room[0];
}

__attribute__((noinline)) static int recursive(int depth)
{
    if (depth == 0) {
        chosen_point(7003);
        return 0;
    }
    return recursive(depth - 1) + 1;
}

int main(void)
{
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof(int), by_value);
    const int sum = outer(7) + recursive(30);
    chosen_point(7004);
    return sum == 0;
}
