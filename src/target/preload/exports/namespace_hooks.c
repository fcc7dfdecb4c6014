// SPDX-License-Identifier: MIT
// namespace_hooks: see namespace_hooks.h.
//
// Compiled with frame pointers: unwind_caller_regs() reads them.
#include "target/preload/exports/namespace_hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "session/layout.h"
#include "target/preload/exports/block_events.h"
#include "target/preload/exports/hooks.h"
#include "target/preload/process/process.h"
#include "target/preload/real/definitions.h"
#include "target/preload/real/dynamic_section.h"
#include "target/preload/real/real_functions.h"
#include "target/preload/real/redirected_slots.h"
#include "target/unwind/environment/module_table.h"

// The functions of an allocator, and in the same shape our hooks of them.
struct space_functions {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *block, size_t size);
    void *(*memalign)(size_t alignment, size_t size);
    void *(*aligned_alloc)(size_t alignment, size_t size);
    void *(*valloc)(size_t size);
    void *(*pvalloc)(size_t size);
    int (*posix_memalign)(void **out, size_t alignment, size_t size);
    void (*free)(void *block);
    void (*free_sized)(void *block, size_t size);
    void (*free_aligned_sized)(void *block, size_t alignment, size_t size);
    int (*dlclose)(void *handle);
};

// Where each is in the structure.
static const struct {
    const char *name;
    size_t place;
} g_names[] = {
#define X(name)                                       \
    {                                                 \
#        name, offsetof(struct space_functions, name) \
    }
    X(malloc),  X(calloc), X(realloc),        X(memalign),   X(aligned_alloc),      X(valloc),
    X(pvalloc), X(free),   X(posix_memalign), X(free_sized), X(free_aligned_sized), X(dlclose),
#undef X
};

// A namespace; without a module: none.
struct space {
    const struct link_map *module; // defines malloc
    struct space_functions real;
};

// glibc has 16, and the program's own is one of them.
#define EACH_SPACE(X) \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#define SPACES 15u

static struct space g_spaces[SPACES]; // written under the loader's lock

ALWAYS_INLINE int
space_posix_memalign(const struct space_functions *real, void **out, size_t alignment, size_t size)
{
    const int result = real->posix_memalign(out, alignment, size);
    if (result == 0) {
        (void)record_block_of_caller(*out, size);
    }
    return result;
}

ALWAYS_INLINE void *space_realloc(const struct space_functions *real, void *block, size_t size)
{
    const struct unwind_regs caller = unwind_caller_regs();
    return record_reallocation(&caller, real->realloc, block, size);
}

ALWAYS_INLINE void space_free(const struct space_functions *real, void *block)
{
    if (block != NULL) {
        record_free(block);
        real->free(block);
    }
}

// The hooks of each namespace.
#define HOOKS(n)                                                                              \
    static void *malloc_##n(size_t size)                                                      \
    {                                                                                         \
        return record_block_of_caller(g_spaces[n].real.malloc(size), size);                   \
    }                                                                                         \
    static void *calloc_##n(size_t count, size_t size)                                        \
    {                                                                                         \
        return record_block_of_caller(g_spaces[n].real.calloc(count, size), count * size);    \
    }                                                                                         \
    static void *realloc_##n(void *block, size_t size)                                        \
    {                                                                                         \
        return space_realloc(&g_spaces[n].real, block, size);                                 \
    }                                                                                         \
    static void *memalign_##n(size_t alignment, size_t size)                                  \
    {                                                                                         \
        return record_block_of_caller(g_spaces[n].real.memalign(alignment, size), size);      \
    }                                                                                         \
    static void *aligned_alloc_##n(size_t alignment, size_t size)                             \
    {                                                                                         \
        return record_block_of_caller(g_spaces[n].real.aligned_alloc(alignment, size), size); \
    }                                                                                         \
    static void *valloc_##n(size_t size)                                                      \
    {                                                                                         \
        return record_block_of_caller(g_spaces[n].real.valloc(size), size);                   \
    }                                                                                         \
    static void *pvalloc_##n(size_t size)                                                     \
    {                                                                                         \
        return record_block_of_caller(g_spaces[n].real.pvalloc(size), size);                  \
    }                                                                                         \
    static int posix_memalign_##n(void **out, size_t alignment, size_t size)                  \
    {                                                                                         \
        return space_posix_memalign(&g_spaces[n].real, out, alignment, size);                 \
    }                                                                                         \
    static void free_##n(void *block)                                                         \
    {                                                                                         \
        space_free(&g_spaces[n].real, block);                                                 \
    }                                                                                         \
    static void free_sized_##n(void *block, size_t size)                                      \
    {                                                                                         \
        (void)size; /* a promise by the caller, not needed */                                 \
        space_free(&g_spaces[n].real, block);                                                 \
    }                                                                                         \
    static void free_aligned_sized_##n(void *block, size_t alignment, size_t size)            \
    {                                                                                         \
        (void)alignment; /* likewise */                                                       \
        (void)size;                                                                           \
        space_free(&g_spaces[n].real, block);                                                 \
    }                                                                                         \
    static int dlclose_##n(void *handle)                                                      \
    {                                                                                         \
        return close_module(g_spaces[n].real.dlclose, handle);                                \
    }
EACH_SPACE(HOOKS)
#undef HOOKS

static const struct space_functions g_hooks[SPACES] = {
#define HOOKS(n)                   \
    [n] = {malloc_##n,             \
           calloc_##n,             \
           realloc_##n,            \
           memalign_##n,           \
           aligned_alloc_##n,      \
           valloc_##n,             \
           pvalloc_##n,            \
           posix_memalign_##n,     \
           free_##n,               \
           free_sized_##n,         \
           free_aligned_sized_##n, \
           dlclose_##n},
    EACH_SPACE(HOOKS)
#undef HOOKS
};

// What namespace_open asks for, and whether it came so.
struct space_search {
    const struct link_map *opened;
    bool is_recorded;
};

static uint64_t function_at(const struct space_functions *functions, size_t place)
{
    uint64_t function;
    memcpy(&function, (const uint8_t *)functions + place, sizeof(function)); // POSIX: it fits
    return function;
}

// Return the address of a module's function; 0 if it defines none.
static uint64_t defined_in(const struct link_map *module, const char *name)
{
    struct dynamic_section section;
    return dynamic_section_read(module->l_addr, module->l_ld, &section)
               ? dynamic_section_function(&section, name)
               : 0;
}

// Find the functions that the modules of a namespace call by these names: the first definitions.
static struct space find_functions(const struct opened_modules *modules)
{
    struct space found = {.module = NULL};
    for (size_t i = 0; i < ARRAY_LEN(g_names); i++) {
        uint64_t function = 0;
        size_t at = 0;
        for (; at < modules->count && function == 0; at++) {
            function = defined_in(modules->items[at], g_names[i].name);
        }
        memcpy((uint8_t *)&found.real + g_names[i].place, &function, sizeof(function));
        found.module = i == 0 && function != 0 ? modules->items[at - 1] : found.module;
    }
    return found;
}

static bool is_free(const struct space *space)
{
    return space->module == NULL ||
           definition_module_at((uint64_t)space->real.malloc) != space->module;
}

// Return the row of an allocator, or one for it; SPACES: all are in use. A row with the same malloc
// is of an allocator that was unloaded from there, if it is not the same one.
static size_t row_for(const struct space *found)
{
    size_t row = SPACES;
    for (size_t i = 0; i < SPACES; i++) {
        if (g_spaces[i].module != NULL && g_spaces[i].real.malloc == found->real.malloc) {
            return i;
        }
        row = row == SPACES && is_free(&g_spaces[i]) ? i : row;
    }
    return row;
}

static void redirect(const struct opened_modules *modules, size_t row)
{
    struct redirected_function functions[ARRAY_LEN(g_names)];
    for (size_t i = 0; i < ARRAY_LEN(g_names); i++) {
        functions[i] = (struct redirected_function){
            .name = g_names[i].name,
            .from = function_at(&g_spaces[row].real, g_names[i].place),
            .to = function_at(&g_hooks[row], g_names[i].place),
        };
    }
    for (size_t i = 0; i < modules->count; i++) {
        struct module_span span;
        if (module_table_find((uint64_t)modules->items[i]->l_ld, &span)) {
            redirected_slots_set(modules->items[i], span.headers, functions, ARRAY_LEN(functions));
        }
    }
}

static const struct link_map *first_of(const struct link_map *module)
{
    while (module->l_prev != NULL) {
        module = module->l_prev;
    }
    return module;
}

// Record the allocator of the modules that were opened. The loader lists other modules: it is asked
// for its lock.
static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)info;
    (void)size;
    struct space_search *search = context;
    struct opened_modules modules;
    opened_modules_list(search->opened, first_of(search->opened), &modules);
    const struct space found = find_functions(&modules);
    const bool is_known = found.module != NULL && found.real.free != NULL &&
                          definition_module_at((uint64_t)found.real.malloc) == found.module &&
                          defined_in(found.module, "_Znwm") == 0;
    const size_t row = is_known ? row_for(&found) : SPACES;
    if (row != SPACES) {
        g_spaces[row] = found;
        redirect(&modules, row);
    }
    search->is_recorded = row != SPACES;
    return 1; // it has seen all
}

static void count(enum session_counter counter)
{
    struct session_header *session = process_session();
    if (session != NULL) {
        session_count(session, counter, 1);
    }
}

void *namespace_open(long namespace, const char *file, int mode)
{
    // Lazy pointers would be bound past the hooks later. What cannot be bound at once is opened as
    // requested.
    void *handle = g_real.dlmopen(namespace, file, (mode & ~RTLD_LAZY) | RTLD_NOW);
    const bool is_bound = handle != NULL;
    if (handle == NULL && (mode & RTLD_NOW) == 0) {
        handle = g_real.dlmopen(namespace, file, mode);
    }
    if (handle != NULL) {
        const int saved_errno = errno;
        struct space_search search = {.opened = handle};
        if (is_bound) {
            (void)dl_iterate_phdr(visit, &search); // 1
        }
        count(search.is_recorded ? LOST_late_namespaces : LOST_namespaces);
        errno = saved_errno;
    }
    return handle;
}
