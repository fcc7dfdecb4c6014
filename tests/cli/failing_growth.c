// SPDX-License-Identifier: MIT
// failing_growth: a library for cairn, in which memory ends: realloc fails from one call on, for
// good. Only calls of the program count, not those of libraries.
//
// FAILING_FROM is the number of that call; 0: none. FAILING_WHILE, if set, is a file: while it does
// not exist nothing fails. FAILING_LEAST is the least size that fails. FAILING_COUNT, if set, is a
// file that gets the number of calls at the end.
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_realloc(void *block, size_t bytes);

static atomic_ulong g_made;
static unsigned long g_from;
static unsigned long g_least;
static const char *g_while;
static uintptr_t g_start; // of the program
static uintptr_t g_end;

static unsigned long number_of(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? strtoul(value, NULL, 10) : 0;
}

// The first object is the program.
static int find_program(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            const uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            g_start = g_start == 0 ? start : g_start;
            g_end = start + info->dlpi_phdr[i].p_memsz;
        }
    }
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    (void)dl_iterate_phdr(find_program, NULL);
    g_least = number_of("FAILING_LEAST");
    g_while = getenv("FAILING_WHILE");
    g_from = number_of("FAILING_FROM"); // last: now they fail
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAILING_COUNT");
    FILE *file = path != NULL ? fopen(path, "w") : NULL;
    if (file != NULL) {
        (void)fprintf(file, "%lu", atomic_load(&g_made));
        (void)fclose(file);
    }
}

void *realloc(void *block, size_t bytes)
{
    const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (caller >= g_start && caller < g_end && bytes >= g_least) {
        const unsigned long number = atomic_fetch_add(&g_made, 1) + 1;
        if (g_from != 0 && number >= g_from && (g_while == NULL || access(g_while, F_OK) == 0)) {
            errno = ENOMEM;
            return NULL;
        }
    }
    return __libc_realloc(block, bytes);
}
