// SPDX-License-Identifier: MIT
// real_functions: see real_functions.h.
#include "preload/real_functions.h"

#include <errno.h>
#include <string.h>

#include "preload/definitions.h"

static bool g_is_resolved;
static bool g_is_hooked;

static void *refuse(void)
{
    errno = ENOMEM;
    return NULL;
}

// The stubs. Each looks everything up and goes on to the real function, unless there is none.
#define X(name, result, parameters, arguments, answer)                   \
 static result first_##name parameters                                   \
 {                                                                       \
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

// Stores the next definition of `name` in the function pointer at `place`; if there is none, leaves
// it as it is. Returns the module that defines it, or NULL.
static const struct link_map *look_up(const char *name, void *place)
{
    const struct definition found = definition_next(name);
    if (found.module != NULL) {
        memcpy(place, &found.address, sizeof(found.address)); // POSIX: it fits a pointer
    }
    return found.module;
}

// An old runtime may lack some of the operators.
static void look_up_operators(struct real_functions *next, const struct link_map *allocator)
{
    const struct link_map *runtime = look_up("_Znwm", &next->_Znwm);
    if (runtime == NULL) {
        return;
    }
#define X(name, parameters, arguments, alignment, throws) (void)look_up(#name, &next->name);
    NEW_OPERATORS(X)
#undef X
#define X(name, parameters, arguments) (void)look_up(#name, &next->name);
    DELETE_OPERATORS(X)
#undef X
    next->operators = runtime == allocator ? OPERATORS_RECORD : OPERATORS_FORWARD;
}

void real_functions_resolve(void)
{
    if (g_is_resolved) {
        return;
    }
    struct real_functions next = g_real;
#define X(name, result, parameters, arguments, answer) (void)look_up(#name, &next.name);
    ALLOCATOR_FUNCTIONS(X)
#undef X
    (void)look_up("free", &next.free);
    (void)look_up("dlopen", &next.dlopen);
    (void)look_up("dlclose", &next.dlclose);
    look_up_operators(&next, definition_next("malloc").module);
    // Who replaces malloc replaces the others.
    g_is_hooked = definition_is_ours(definition_first("malloc"));
    g_real = next;
    g_is_resolved = true;
}

bool real_functions_are_hooked(void)
{
    return g_is_hooked;
}
