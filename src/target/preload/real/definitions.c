// SPDX-License-Identifier: MIT
#include "target/preload/real/definitions.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "target/preload/real/dynamic_section.h"

// The last module that was loaded at the start; NULL before the first call.
static _Atomic(const struct link_map *) g_last;

// Weak, so that the library does not need the loader, which would then precede libc in the search
// order.
extern struct r_debug _r_debug __attribute__((weak));

// musl's equivalent, with an equal beginning, and so is each module in its list.
// NOLINTNEXTLINE(readability-identifier-naming)
extern struct r_debug *_dl_debug_addr __attribute__((weak));

extern int _dl_find_object(void *pc, struct dl_find_object *result) __attribute__((weak));

static const struct link_map *first_module(void)
{
    if (&_r_debug != NULL) {
        return _r_debug.r_map;
    }
    return &_dl_debug_addr != NULL && _dl_debug_addr != NULL ? _dl_debug_addr->r_map : NULL;
}

static const struct link_map *last_at_start(void)
{
    // Relaxed: a thread that determines the end again has loaded nothing meanwhile.
    const struct link_map *last = atomic_load_explicit(&g_last, memory_order_relaxed);
    if (last == NULL) {
        last = first_module();
        while (last != NULL && last->l_next != NULL) {
            last = last->l_next;
        }
        atomic_store_explicit(&g_last, last, memory_order_relaxed);
    }
    return last;
}

static uint64_t function_of(const struct link_map *module, const char *name)
{
    struct dynamic_section section;
    return module->l_ld != NULL && dynamic_section_read(module->l_addr, module->l_ld, &section)
               ? dynamic_section_function(&section, name)
               : 0;
}

static uint64_t variable_of(const struct link_map *module, const char *name)
{
    struct dynamic_section section;
    return module->l_ld != NULL && dynamic_section_read(module->l_addr, module->l_ld, &section)
               ? dynamic_section_variable(&section, name)
               : 0;
}

static struct definition search(const char *name,
                                bool is_behind_us,
                                uint64_t (*find)(const struct link_map *module, const char *name))
{
    const struct link_map *last = last_at_start();
    const struct link_map *module = last != NULL ? first_module() : NULL;
    bool may_be_here = !is_behind_us;
    while (module != NULL) {
        const uint64_t address = may_be_here ? find(module, name) : 0;
        if (address != 0) {
            return (struct definition){.module = module, .address = address};
        }
        may_be_here |= module->l_ld == _DYNAMIC;
        module = module != last ? module->l_next : NULL;
    }
    return (struct definition){.module = NULL};
}

struct definition definition_first(const char *name)
{
    return search(name, false, function_of);
}

struct definition definition_next(const char *name)
{
    return search(name, true, function_of);
}

struct definition definition_first_variable(const char *name)
{
    return search(name, false, variable_of);
}

const struct link_map *definition_next_into(const char *name, void *place)
{
    const struct definition found = definition_next(name);
    if (found.module != NULL) {
        memcpy(place, &found.address, sizeof(found.address)); // POSIX: it fits a pointer
    }
    return found.module;
}

bool definition_is_ours(struct definition definition)
{
    return definition.module != NULL && definition.module->l_ld == _DYNAMIC;
}

const struct link_map *definition_module_at(uint64_t address)
{
    struct dl_find_object found;
    const bool is_found = _dl_find_object != NULL && _dl_find_object((void *)address, &found) ==
                                                         0; // NOLINT(performance-no-int-to-ptr)
    return is_found ? found.dlfo_link_map : NULL;
}

// Find the first definition in a module that one of `from`'s relocated references leads to. A
// module stays loaded as long as modules that refer to it.
static struct definition search_references(const struct link_map *from, const char *name)
{
    struct dynamic_section section;
    if (!dynamic_section_read(from->l_addr, from->l_ld, &section)) {
        return (struct definition){.module = NULL};
    }
    const struct link_map *last_seen = from;
    for (size_t kind = 0; kind < 2; kind++) {
        const size_t count = section.relocations[kind].bytes / sizeof(ElfW(Rela));
        for (size_t i = 0; i < count; i++) {
            const ElfW(Rela) *relocation = &section.relocations[kind].first[i];
            if (ELF64_R_SYM(relocation->r_info) == 0) {
                continue;
            }
            const uint64_t place = from->l_addr + relocation->r_offset;
            const uint64_t target = *(const uint64_t *)place; // NOLINT(performance-no-int-to-ptr)
            const struct link_map *module = definition_module_at(target);
            if (module == NULL || module == last_seen || module->l_ld == _DYNAMIC) {
                continue;
            }
            last_seen = module;
            const uint64_t address = function_of(module, name);
            if (address != 0) {
                return (struct definition){.module = module, .address = address};
            }
        }
    }
    return (struct definition){.module = NULL};
}

struct definition definition_for(uint64_t address, const char *name)
{
    const struct link_map *module = definition_module_at(address);
    if (module == NULL) {
        return (struct definition){.module = NULL};
    }
    const uint64_t own = function_of(module, name);
    return own != 0 ? (struct definition){.module = module, .address = own}
                    : search_references(module, name);
}
