// SPDX-License-Identifier: MIT
// deep_bind: see deep_bind.h.
#include "preload/deep_bind.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "base/sys.h"
#include "preload/hooks.h"

#define PAGE_BYTES 4096u
#define PAGE_MASK  (~(uintptr_t)(PAGE_BYTES - 1))

// What we hook, by name.
struct hooked_function {
    const char *name;
    uint64_t hook;
};

#define HOOKED_COUNT_MAX 64u

// A module's tables, as its dynamic section names them (System V ABI, "Dynamic Section").
struct module_tables {
    const ElfW(Sym) * symbols;
    const char *names;
    struct {
        const ElfW(Rela) * first;
        size_t bytes;
    } relocations[2]; // of data, of the procedure linkage table
};

// The part of a module that the loader has made read-only, or nothing.
struct read_only_part {
    ElfW(Addr) bias;
    uintptr_t start;
    uintptr_t end;
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
    Dl_info unused;
    struct link_map *module = NULL;
    if (file == NULL || strchr(file, '/') != NULL) {
        return true;
    }
    const int found = dladdr1(caller, &unused, (void **)&module, RTLD_DL_LINKMAP);
    return found != 0 && module != NULL && !has_search_path(module);
}

static struct module_tables tables_of(const struct link_map *module)
{
    struct module_tables tables = {.symbols = NULL};
    for (const ElfW(Dyn) *entry = module->l_ld; entry->d_tag != DT_NULL; entry++) {
        const void *at = (const void *)entry->d_un.d_ptr; // relocated by the loader
        switch (entry->d_tag) {
        case DT_SYMTAB:
            tables.symbols = at;
            break;
        case DT_STRTAB:
            tables.names = at;
            break;
        case DT_RELA:
            tables.relocations[0].first = at;
            break;
        case DT_RELASZ:
            tables.relocations[0].bytes = entry->d_un.d_val;
            break;
        case DT_JMPREL:
            tables.relocations[1].first = at;
            break;
        case DT_PLTRELSZ:
            tables.relocations[1].bytes = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return tables;
}

static int find_read_only_part(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct read_only_part *part = context;
    if (info->dlpi_addr != part->bias) {
        return 0;
    }
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_GNU_RELRO) {
            part->start = (info->dlpi_addr + header->p_vaddr) & PAGE_MASK;
            part->end = (info->dlpi_addr + header->p_vaddr + header->p_memsz) & PAGE_MASK;
        }
    }
    return 1;
}

static void protect(const struct read_only_part *part)
{
    if (part->start < part->end) {
        // Refused, the module is as safe as one without that protection.
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

// Sets the slot of one relocation to the hook if it holds the function that the hook wraps.
static void redirect(const struct module_tables *tables,
                     const ElfW(Rela) * relocation,
                     const struct read_only_part *part,
                     const struct hooked_function *hooks,
                     size_t hook_count)
{
    const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(relocation->r_info)];
    const char *name = tables->names + symbol->st_name;
    for (size_t i = 0; i < hook_count; i++) {
        if (strcmp(name, hooks[i].name) != 0) {
            continue;
        }
        const uintptr_t address = part->bias + relocation->r_offset;
        _Atomic uint64_t *slot = (_Atomic uint64_t *)address;
        const uint64_t real = (uint64_t)dlsym(RTLD_NEXT, name);
        // Relaxed: a thread that calls through the slot gets one function or the other.
        if (real != 0 && atomic_load_explicit(slot, memory_order_relaxed) == real &&
            is_writable(part, address)) {
            atomic_store_explicit(slot, hooks[i].hook, memory_order_relaxed);
        }
        return;
    }
}

static void redirect_module(const struct link_map *module,
                            const struct hooked_function *hooks,
                            size_t hook_count)
{
    const struct module_tables tables = tables_of(module);
    struct read_only_part part = {.bias = module->l_addr};
    if (tables.symbols == NULL || tables.names == NULL ||
        (uintptr_t)tables.symbols < module->l_addr) {
        return; // the vdso's section is not relocated
    }
    (void)dl_iterate_phdr(find_read_only_part, &part); // not found: nothing is read-only
    for (size_t kind = 0; kind < ARRAY_LEN(tables.relocations); kind++) {
        const ElfW(Rela) *first = tables.relocations[kind].first;
        const size_t count =
            first != NULL ? tables.relocations[kind].bytes / sizeof(ElfW(Rela)) : 0;
        for (size_t i = 0; i < count; i++) {
            if (ELF64_R_SYM(first[i].r_info) != 0) {
                redirect(&tables, &first[i], &part, hooks, hook_count);
            }
        }
    }
    protect(&part);
}

void *deep_bind_open(const char *file, int mode)
{
    // Pointers that are still to be bound lazily would be bound past us later. A plugin that cannot
    // be bound at once is opened as it was asked for.
    void *handle = g_real.dlopen(file, (mode & ~RTLD_LAZY) | RTLD_NOW);
    if (handle == NULL && (mode & RTLD_NOW) == 0) {
        handle = g_real.dlopen(file, mode);
    }
    struct link_map *loaded = NULL;
    if (handle == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &loaded) != 0) {
        return handle;
    }
    const int saved_errno = errno;
    struct hooked_function hooks[HOOKED_COUNT_MAX];
    const size_t hook_count = list_hooks(hooks);
    // What it brought with it was loaded after it.
    for (const struct link_map *module = loaded; module != NULL; module = module->l_next) {
        redirect_module(module, hooks, hook_count);
    }
    (void)dlerror(); // takes back what our look-ups did not find
    errno = saved_errno;
    return handle;
}
