// SPDX-License-Identifier: MIT
#include "target/preload/real/real_functions.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
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

static void *first_dlmopen(long namespace, const char *file, int mode)
{
    real_functions_resolve();
    return g_real.dlmopen != first_dlmopen ? g_real.dlmopen(namespace, file, mode) : NULL;
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
    .dlmopen = first_dlmopen,
    .dlclose = first_dlclose,
    .operators = OPERATORS_REPLACE,
};

// Whether a module's plain operators are known to do nothing but call malloc and free.
static bool is_known_runtime(const struct link_map *module)
{
    static const char *const names[] = {"libstdc++.so", "libc++.so", "libc++abi.so"};
    const char *slash = strrchr(module->l_name, '/');
    const char *base = slash != NULL ? slash + 1 : module->l_name;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strncmp(base, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

// Whether all modules call our definition of an operator, and no other follows but the runtime's.
static bool leads_to(const char *name, const struct link_map *runtime)
{
    const struct link_map *next = definition_next(name).module;
    return (next == NULL || next == runtime) && definition_is_ours(definition_first(name));
}

// Whether no other module has replaced an operator, which the runtime's others would call.
static bool are_plain(const struct link_map *runtime)
{
    bool are_ours = g_is_hooked && is_known_runtime(runtime);
#define X(name, ...) are_ours = are_ours && leads_to(#name, runtime);
    PLAIN_NEW_OPERATORS(X)
    PLAIN_DELETE_OPERATORS(X)
#undef X
    return are_ours;
}

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
    next->operators_are_plain = next->operators == OPERATORS_FORWARD && are_plain(runtime);
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
    (void)definition_next_into("dlmopen", &next.dlmopen);
    (void)definition_next_into("dlclose", &next.dlclose);
    // An allocator that replaces malloc replaces the others.
    const struct definition in_use = definition_first("malloc");
    g_is_hooked = definition_is_ours(in_use);
    find_operators(&next, definition_next("malloc").module);
    if (!g_is_hooked) {
        const struct definition before = definition_first("realloc");
        if (before.address != 0 && !definition_is_ours(before)) {
            memcpy(&next.realloc_before_ours, &before.address, sizeof(before.address));
        }
    }
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
