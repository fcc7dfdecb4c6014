// SPDX-License-Identifier: MIT
// TRUTH: allocations=4 frees=3 allocated_bytes=1111 temporary=1 peak_bytes=1111
// TRUTH: live_bytes=1 live_blocks=1
//
// Allocates before main and after it: in a constructor, in main, in an exit handler, and in a
// destructor, which runs last.
#include <stdlib.h>

static void *g_before;
static void *g_main;
static void *g_handler;
static void *g_last;

__attribute__((constructor)) static void before_main(void)
{
    g_before = malloc(1);
}

static void at_exit(void)
{
    g_handler = malloc(100);
}

__attribute__((destructor)) static void after_exit(void)
{
    g_last = malloc(1000);
    free(g_last); // temporary
    free(g_handler);
    free(g_main);
}

int main(void)
{
    atexit(at_exit);
    g_main = malloc(10);
    return g_before == NULL;
}
