// SPDX-License-Identifier: MIT
// real_functions: see real_functions.h.
#include "preload/real_functions.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "preload/bootstrap_heap.h"
#include "unwind/unwind.h"

enum resolve_state {
    UNRESOLVED = 0,
    RESOLVING,
    RESOLVED
};

static enum resolve_state g_resolve_state;
static bool g_hooked;

static void *refuse(void)
{
    errno = ENOMEM;
    return NULL;
}

static void *first_block(size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? refuse() : bootstrap_heap_take(bytes);
}

// The stubs. Each looks everything up and goes on to the real function, unless there is none, or
// the look-up itself is the caller.
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
// it as it is.
static bool look_up(const char *name, void *place)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found != NULL) {
        memcpy(place, &found, sizeof(found)); // POSIX: a function's address fits a void *
    }
    return found != NULL;
}

static bool same_module(uint64_t a, uint64_t b)
{
    struct unwind_module of_a;
    struct unwind_module of_b;
    return unwind_find_module(a, &of_a) && unwind_find_module(b, &of_b) && of_a.start == of_b.start;
}

static void resolve_operators(void)
{
    if (!look_up("_Znwm", &g_real._Znwm)) {
        (void)dlerror(); // takes our failure back; there is nobody to tell
        return;
    }
#define X(name, parameters, arguments, alignment, throws) (void)look_up(#name, &g_real.name);
    NEW_OPERATORS(X)
#undef X
#define X(name, parameters, arguments) (void)look_up(#name, &g_real.name);
    DELETE_OPERATORS(X)
#undef X
    (void)dlerror(); // an old runtime may lack some
    g_real.operators = same_module((uintptr_t)g_real._Znwm, (uintptr_t)g_real.malloc)
                           ? OPERATORS_RECORD
                           : OPERATORS_FORWARD;
}

// An executable at a fixed address that takes a function's address lends the function an address of
// its own, in its PLT: a symbol with a value but without a section. dlsym finds it as if it were a
// definition; the program's calls go past it.
static bool is_lent_address(const void *found)
{
    Dl_info unused;
    ElfW(Sym) *symbol = NULL;
    return dladdr1(found, &unused, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL &&
           symbol->st_shndx == SHN_UNDEF;
}

// The first of the allocator's functions that is defined where dlsym finds it tells for all: who
// replaces malloc replaces the others. Where all are lent the executable defines none of them.
static bool find_hooked(void)
{
    static const char *const names[] = {
#define X(name, result, parameters, arguments, answer) #name,
        ALLOCATOR_FUNCTIONS(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const void *found = dlsym(RTLD_DEFAULT, names[i]);
        if (same_module((uintptr_t)found, (uintptr_t)first_free)) {
            return true;
        }
        if (!is_lent_address(found)) {
            return false;
        }
    }
    return true;
}

void real_functions_resolve(void)
{
    if (g_resolve_state != UNRESOLVED) {
        return;
    }
    const int saved_errno = errno;
    g_resolve_state = RESOLVING;
    struct real_functions next = g_real;
    bool complete = look_up("free", &next.free) && look_up("dlopen", &next.dlopen) &&
                    look_up("dlclose", &next.dlclose);
#define X(name, result, parameters, arguments, answer) complete &= look_up(#name, &next.name);
    ALLOCATOR_FUNCTIONS(X)
#undef X
    if (!complete) {
        (void)dlerror(); // as below: the failure is ours, not the program's
    }
    g_real = next;
    resolve_operators();
    g_hooked = find_hooked();
    g_resolve_state = RESOLVED;
    errno = saved_errno;
}

bool real_functions_are_resolving(void)
{
    return g_resolve_state == RESOLVING;
}

bool real_functions_are_hooked(void)
{
    return g_hooked;
}
