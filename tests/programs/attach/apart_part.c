// SPDX-License-Identifier: MIT
// apart_part: a library for apart.c, which loads it into linker namespaces of their own. It has a
// key of its own, and aborts if a thread has a value for it.
#include <pthread.h>
#include <stdlib.h>

void *apart_make(void);

static void *g_early;
static pthread_key_t g_key; // the first one of its libc

__attribute__((constructor)) static void apart_begin(void)
{
    g_early = malloc(77);
    if (pthread_key_create(&g_key, free) != 0) {
        abort();
    }
}

__attribute__((destructor)) static void apart_end(void)
{
    free(g_early);
    (void)pthread_key_delete(g_key);
}

// Allocate 100 and 50 bytes, free the former and return the latter.
void *apart_make(void)
{
    if (pthread_getspecific(g_key) != NULL) {
        abort();
    }
    void *freed = malloc(100);
    void *kept = malloc(50);
    free(freed);
    return kept;
}
