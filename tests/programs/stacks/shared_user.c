// SPDX-License-Identifier: MIT
// shared_user: stacks that call from the program into a shared library, back, and in again.
#include <stddef.h>

void *chosen_point(size_t size);
void *library_outer(void *(*call)(size_t), size_t size);

static volatile int g_blocks;

static void *back_in_program(size_t size)
{
    g_blocks++;
    void *block = chosen_point(size);
    g_blocks += block == NULL;
    return block;
}

int main(void)
{
    void *direct = chosen_point(7301);
    void *around = library_outer(back_in_program, 7302);
    return direct == around;
}
