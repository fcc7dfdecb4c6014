// SPDX-License-Identifier: MIT
#include "target/preload/exports/deep_bind.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "base/sys.h"
#include "target/preload/exports/hooks.h"
#include "target/preload/real/definitions.h"
#include "target/preload/real/dynamic_section.h"

#define PAGE_BYTES 4096u
#define PAGE_MASK  (~(uintptr_t)(PAGE_BYTES - 1))

// A function that we hook, by name.
struct hooked_function {
    const char *name;
    uint64_t hook;
};

#define HOOKED_COUNT_MAX 64u
#define MODULES_MAX      128u // that one plugin loads with it; further ones are not redirected

// The part of a module that the loader has made read-only, or nothing.
struct read_only_part {
    uintptr_t start;
    uintptr_t end;
};

// The modules to redirect, and the hooks.
struct redirection {
    const struct link_map *modules[MODULES_MAX]; // the plugin, and the modules loaded with it
    size_t module_count;
    bool is_listed; // all modules; before that only the plugin
    size_t hook_count;
    struct hooked_function hooks[HOOKED_COUNT_MAX];
};

static size_t list_hooks(struct hooked_function list[static HOOKED_COUNT_MAX])
{
    size_t count = 0;
#define PUT(function) \
    list[count++] = (struct hooked_function){.name = #function, .hook = (uint64_t)(function)}
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

static bool is_named(const struct link_map *module, const char *name)
{
    const char *slash = strrchr(module->l_name, '/');
    if (strcmp(module->l_name, name) == 0 || (slash != NULL && strcmp(slash + 1, name) == 0)) {
        return true;
    }
    struct dynamic_section section;
    return dynamic_section_read(module->l_addr, module->l_ld, &section) &&
           section.own_name != NULL && strcmp(section.own_name, name) == 0;
}

static bool is_redirected(const struct redirection *to, uint64_t bias)
{
    for (size_t i = 0; i < to->module_count; i++) {
        if (to->modules[i]->l_addr == bias) {
            return true;
        }
    }
    return false;
}

static void add_module(struct redirection *to, const char *name)
{
    const struct link_map *module = to->modules[0]->l_next;
    while (module != NULL && !is_named(module, name)) {
        module = module->l_next;
    }
    if (module != NULL && !is_redirected(to, module->l_addr) && to->module_count < MODULES_MAX) {
        to->modules[to->module_count++] = module;
    }
}

// List the modules that the plugin needs, directly or indirectly, and that were loaded after it.
// Other new modules may be ones that another thread is just loading: the loader is still writing to
// these.
static void list_modules(struct redirection *to)
{
    for (size_t i = 0; i < to->module_count; i++) {
        const struct link_map *module = to->modules[i];
        struct dynamic_section section;
        if (!dynamic_section_read(module->l_addr, module->l_ld, &section)) {
            continue;
        }
        for (const ElfW(Dyn) *entry = module->l_ld; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_NEEDED) {
                add_module(to, section.names + entry->d_un.d_val);
            }
        }
    }
}

static void protect(const struct read_only_part *part)
{
    if (part->start < part->end) {
        // If this is refused, the module is as safe as one without that protection.
        (void)sys_mprotect((void *)part->start, part->end - part->start, PROT_READ);
    }
}

static bool is_writable(const struct read_only_part *part, uintptr_t slot)
{
    if (slot < part->start || slot >= part->end) {
        return true;
    }
    return !sys_failed(
        sys_mprotect((void *)(slot & PAGE_MASK), PAGE_BYTES, PROT_READ | PROT_WRITE));
}

// Set the slot of one relocation to the hook if it contains the function that the hook wraps.
static void redirect(const struct dynamic_section *section,
                     const ElfW(Rela) * relocation,
                     const struct read_only_part *part,
                     const struct redirection *to)
{
    const ElfW(Sym) *symbol = &section->symbols[ELF64_R_SYM(relocation->r_info)];
    const char *name = section->names + symbol->st_name;
    for (size_t i = 0; i < to->hook_count; i++) {
        if (strcmp(name, to->hooks[i].name) != 0) {
            continue;
        }
        const uintptr_t address = section->bias + relocation->r_offset;
        _Atomic uint64_t *slot = (_Atomic uint64_t *)address;
        const uint64_t real = definition_next(name).address;
        // Relaxed: a thread that calls through the slot gets either function.
        if (real != 0 && atomic_load_explicit(slot, memory_order_relaxed) == real &&
            is_writable(part, address)) {
            atomic_store_explicit(slot, to->hooks[i].hook, memory_order_relaxed);
        }
        return;
    }
}

static void redirect_all(const struct dynamic_section *section,
                         const struct read_only_part *part,
                         const struct redirection *to)
{
    for (size_t kind = 0; kind < ARRAY_LEN(section->relocations); kind++) {
        const ElfW(Rela) *first = section->relocations[kind].first;
        const size_t count =
            first != NULL ? section->relocations[kind].bytes / sizeof(ElfW(Rela)) : 0;
        for (size_t i = 0; i < count; i++) {
            if (ELF64_R_SYM(first[i].r_info) != 0) {
                redirect(section, &first[i], part, to);
            }
        }
    }
    protect(part);
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct redirection *to = context;
    if (!to->is_listed) {
        list_modules(to); // here, under the loader's lock
        to->is_listed = true;
    }
    if (!is_redirected(to, info->dlpi_addr)) {
        return 0;
    }
    const ElfW(Dyn) *entries = NULL;
    struct read_only_part part = {0};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_DYNAMIC) {
            entries = (const ElfW(Dyn) *)start;
        } else if (header->p_type == PT_GNU_RELRO) {
            part.start = start & PAGE_MASK;
            part.end = (start + header->p_memsz) & PAGE_MASK;
        }
    }
    struct dynamic_section section;
    if (entries != NULL && dynamic_section_read(info->dlpi_addr, entries, &section)) {
        redirect_all(&section, &part, to);
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
        struct redirection to = {.modules = {handle}, .module_count = 1};
        to.hook_count = list_hooks(to.hooks);
        (void)dl_iterate_phdr(visit, &to); // always 0
        errno = saved_errno;
    }
    return handle;
}
