// SPDX-License-Identifier: MIT
#include "target/preload/exports/deep_bind.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "target/preload/exports/hooks.h"
#include "target/preload/real/definitions.h"
#include "target/preload/real/redirected_slots.h"

#define HOOKED_COUNT_MAX 64u

struct redirection {
    const struct link_map *plugin;
    struct opened_modules modules; // without any: not listed yet
    size_t hook_count;
    struct redirected_function hooks[HOOKED_COUNT_MAX];
};

static size_t list_hooks(struct redirected_function list[static HOOKED_COUNT_MAX])
{
    size_t count = 0;
#define PUT(function)                             \
    list[count++] = (struct redirected_function){ \
        .name = #function, .from = definition_next(#function).address, .to = (uint64_t)(function)}
#define X(name, result, parameters, arguments, answer) PUT(name);
    ALLOCATOR_FUNCTIONS(X)
#undef X
#define X(name, parameters, arguments, alignment, throws) PUT(name);
    NEW_OPERATORS(X)
#undef X
#define X(name, parameters, arguments) PUT(name);
    DELETE_OPERATORS(X)
#undef X
    PUT(free);
    PUT(cfree);
    PUT(reallocarray);
    PUT(free_sized);
    PUT(free_aligned_sized);
#undef PUT
    return count;
}

static bool has_search_path(const struct link_map *module)
{
    for (const ElfW(Dyn) *entry = module->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH) {
            return true;
        }
    }
    return false;
}

bool deep_bind_may_call(const char *file, const void *caller)
{
    if (file == NULL || strchr(file, '/') != NULL) {
        return true;
    }
    const struct link_map *module = definition_module_at((uint64_t)caller);
    return module != NULL && !has_search_path(module);
}

static const struct link_map *find_at(const struct opened_modules *modules, uint64_t bias)
{
    for (size_t i = 0; i < modules->count; i++) {
        if (modules->items[i]->l_addr == bias) {
            return modules->items[i];
        }
    }
    return NULL;
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct redirection *to = context;
    if (to->modules.count == 0) { // here, under the loader's lock
        // A module that was loaded before the plugin is none of its own.
        opened_modules_list(to->plugin, to->plugin->l_next, &to->modules);
    }
    const struct link_map *module = find_at(&to->modules, info->dlpi_addr);
    if (module != NULL) {
        const struct bytes headers = {(const uint8_t *)info->dlpi_phdr,
                                      info->dlpi_phnum * sizeof(*info->dlpi_phdr)};
        redirected_slots_set(module, headers, to->hooks, to->hook_count);
    }
    return 0;
}

void *deep_bind_open(const char *file, int mode)
{
    // Lazy pointers would be bound past the hooks later. A plugin that cannot be bound at once is
    // opened as requested.
    void *handle = g_real.dlopen(file, (mode & ~RTLD_LAZY) | RTLD_NOW);
    if (handle == NULL && (mode & RTLD_NOW) == 0) {
        handle = g_real.dlopen(file, mode);
    }
    if (handle != NULL) {
        const int saved_errno = errno;
        struct redirection to = {.plugin = handle};
        to.hook_count = list_hooks(to.hooks);
        (void)dl_iterate_phdr(visit, &to); // always 0
        errno = saved_errno;
    }
    return handle;
}
