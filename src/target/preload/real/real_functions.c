// SPDX-License-Identifier: MIT
// real_functions: see real_functions.h.
#include "target/preload/real/real_functions.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "target/preload/real/definitions.h"

static atomic_bool g_is_resolved;
static bool g_is_hooked;
static bool g_is_bypassed;

static void *refuse(void)
{
    errno = ENOMEM;
    return NULL;
}

// The stubs. Each looks everything up and calls the real function, unless there is none.
#define X(name, result, parameters, arguments, answer)                         \
    static result first_##name parameters                                      \
    {                                                                          \
        real_functions_resolve();                                              \
        return g_real.name != first_##name ? g_real.name arguments : (answer); \
    }
ALLOCATOR_FUNCTIONS(X)
#undef X

static void first_free(void *block)
{
    real_functions_resolve();
    if (g_real.free != first_free) {
        g_real.free(block);
    }
}

static void *first_dlopen(const char *file, int mode)
{
    real_functions_resolve();
    return g_real.dlopen != first_dlopen ? g_real.dlopen(file, mode) : NULL;
}

static int first_dlclose(void *handle)
{
    real_functions_resolve();
    return g_real.dlclose != first_dlclose ? g_real.dlclose(handle) : -1;
}

struct real_functions g_real = {
#define X(name, result, parameters, arguments, answer) .name = first_##name,
    ALLOCATOR_FUNCTIONS(X)
#undef X
        .free = first_free,
    .dlopen = first_dlopen,
    .dlclose = first_dlclose,
    .operators = OPERATORS_REPLACE,
};

// An old runtime may lack some of the operators.
static void find_operators(struct real_functions *next, const struct link_map *allocator)
{
    const struct link_map *runtime = definition_next_into("_Znwm", &next->_Znwm);
    if (runtime == NULL) {
        return;
    }
#define X(name, parameters, arguments, alignment, throws) \
    (void)definition_next_into(#name, &next->name);
    NEW_OPERATORS(X)
#undef X
#define X(name, parameters, arguments) (void)definition_next_into(#name, &next->name);
    DELETE_OPERATORS(X)
#undef X
    next->operators = runtime == allocator ? OPERATORS_RECORD : OPERATORS_FORWARD;
}

void real_functions_resolve(void)
{
    // Acquire: pairs with the release below, for threads that come while another one looks up.
    if (atomic_load_explicit(&g_is_resolved, memory_order_acquire)) {
        return;
    }
    struct real_functions next = g_real;
#define X(name, result, parameters, arguments, answer) \
    (void)definition_next_into(#name, &next.name);
    ALLOCATOR_FUNCTIONS(X)
#undef X
    (void)definition_next_into("free", &next.free);
    (void)definition_next_into("dlopen", &next.dlopen);
    (void)definition_next_into("dlclose", &next.dlclose);
    find_operators(&next, definition_next("malloc").module);
    // An allocator that replaces malloc replaces the others.
    const struct definition in_use = definition_first("malloc");
    g_is_hooked = definition_is_ours(in_use);
    g_is_bypassed =
        !g_is_hooked && in_use.module != definition_first("gnu_get_libc_version").module;
    g_real = next;
    atomic_store_explicit(&g_is_resolved, true, memory_order_release);
}

bool real_functions_are_hooked(void)
{
    return g_is_hooked;
}

bool real_functions_are_bypassed(void)
{
    return g_is_bypassed;
}
