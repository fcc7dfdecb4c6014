// SPDX-License-Identifier: MIT
// null_hooks: hooks of malloc and free that do nothing, to preload: the least that any preloaded
// profiler costs.
//
// Each jumps to the next definition through a pointer. glibc's dlsym allocates nothing when it
// finds the symbol.
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static void *first_malloc(size_t size);
static void *first_calloc(size_t count, size_t size);
static void *first_realloc(void *block, size_t size);
static void first_free(void *block);

static void *(*g_malloc)(size_t size) = first_malloc;
static void *(*g_calloc)(size_t count, size_t size) = first_calloc;
static void *(*g_realloc)(void *block, size_t size) = first_realloc;
static void (*g_free)(void *block) = first_free;

// Set a pointer to a function to the next definition of `name`.
static void find(void *pointer, const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);
    memcpy(pointer, &address, sizeof(address));
}

__attribute__((constructor)) static void find_all(void)
{
    find(&g_malloc, "malloc");
    find(&g_calloc, "calloc");
    find(&g_realloc, "realloc");
    find(&g_free, "free");
}

static void *first_malloc(size_t size)
{
    find_all();
    return g_malloc(size);
}

static void *first_calloc(size_t count, size_t size)
{
    find_all();
    return g_calloc(count, size);
}

static void *first_realloc(void *block, size_t size)
{
    find_all();
    return g_realloc(block, size);
}

static void first_free(void *block)
{
    find_all();
    g_free(block);
}

void *malloc(size_t size)
{
    return g_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return g_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    return g_realloc(block, size);
}

void free(void *block)
{
    g_free(block);
}
