// SPDX-License-Identifier: MIT
// next_allocator: the definitions of malloc and its like that come after a library to preload.
//
// The first call of one finds them all. glibc's dlsym allocates nothing when it finds the symbol.
// Include it in one file of such a library.
#pragma once

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
static void find_next(void *pointer, const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);
    memcpy(pointer, &address, sizeof(address));
}

static void find_allocator(void)
{
    find_next(&g_malloc, "malloc");
    find_next(&g_calloc, "calloc");
    find_next(&g_realloc, "realloc");
    find_next(&g_free, "free");
}

static void *first_malloc(size_t size)
{
    find_allocator();
    return g_malloc(size);
}

static void *first_calloc(size_t count, size_t size)
{
    find_allocator();
    return g_calloc(count, size);
}

static void *first_realloc(void *block, size_t size)
{
    find_allocator();
    return g_realloc(block, size);
}

static void first_free(void *block)
{
    find_allocator();
    g_free(block);
}
