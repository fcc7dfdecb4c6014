// SPDX-License-Identifier: MIT
// loader_hooks: the exported dlopen and dlclose, which tell the unwinder when code is loaded and
// unloaded, and dlmopen, whose namespaces have allocators of their own (namespace_hooks.h).
// Context: T, any caller.
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

#include "target/preload/exports/deep_bind.h"
#include "target/preload/exports/hooks.h"
#include "target/preload/exports/namespace_hooks.h"
#include "target/preload/process/process.h"
#include "target/preload/real/definitions.h"
#include "target/preload/real/real_functions.h"

// Without further work this is a tail call, which keeps the program's return address for the loader
// (deep_bind.h). The file is compiled with -O2 in any build.
EXPORT void *dlopen(const char *file, int mode)
{
    unwind_modules_stay();
    if ((mode & RTLD_DEEPBIND) != 0 && deep_bind_may_call(file, __builtin_return_address(0))) {
        return deep_bind_open(file, mode);
    }
    return g_real.dlopen(file, mode);
}

// A namespace that is not recorded is counted. The recorder finds new modules without this.
EXPORT void *dlmopen(long namespace, const char *file, int mode)
{
    unwind_modules_stay();
    struct session_header *session = process_session();
    if (namespace != LM_ID_BASE && session != NULL) {
        if (deep_bind_may_call(file, __builtin_return_address(0))) {
            return namespace_open(namespace, file, mode);
        }
        session_count(session, LOST_namespaces, 1);
    }
    return g_real.dlmopen(namespace, file, mode); // a tail call, as above
}

// A module without users is unloaded when dlclose returns, and so are modules that only it needed;
// a module that stays keeps what it needs. A handle is its module's link_map.
int close_module(int (*real)(void *handle), void *handle)
{
    const struct link_map *module = handle;
    const uint64_t inside = module != NULL ? (uint64_t)module->l_ld : 0;
    const int result = real(handle);
    if (result == 0 && definition_module_at(inside) != module) {
        unwind_flush();
        process_code_unloaded();
    }
    return result;
}

EXPORT int dlclose(void *handle)
{
    return close_module(g_real.dlclose, handle);
}
