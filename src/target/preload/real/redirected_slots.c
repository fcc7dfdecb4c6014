// SPDX-License-Identifier: MIT
#include "target/preload/real/redirected_slots.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "base/page.h"
#include "base/sys.h"
#include "target/preload/real/dynamic_section.h"

struct redirection {
    struct dynamic_section section;
    struct read_only_part part;
    const struct redirected_function *functions;
    size_t function_count;
};

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

static bool is_listed(const struct opened_modules *list, const struct link_map *module)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == module) {
            return true;
        }
    }
    return false;
}

static void add_module(struct opened_modules *list, const struct link_map *first, const char *name)
{
    const struct link_map *module = first;
    while (module != NULL && !is_named(module, name)) {
        module = module->l_next;
    }
    if (module != NULL && !is_listed(list, module) && list->count < OPENED_MODULES_MAX) {
        list->items[list->count++] = module;
    }
}

void opened_modules_list(const struct link_map *opened,
                         const struct link_map *first,
                         struct opened_modules *out)
{
    out->items[0] = opened;
    out->count = 1;
    for (size_t i = 0; i < out->count; i++) {
        const struct link_map *module = out->items[i];
        struct dynamic_section section;
        if (!dynamic_section_read(module->l_addr, module->l_ld, &section)) {
            continue;
        }
        for (const ElfW(Dyn) *entry = module->l_ld; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_NEEDED) {
                add_module(out, first, section.names + entry->d_un.d_val);
            }
        }
    }
}

struct read_only_part read_only_part_of(uint64_t bias, struct bytes headers, uint64_t page_bytes)
{
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)(const void *)headers.data;
    const ElfW(Phdr) *end = header + headers.len / sizeof(*header);
    for (; header < end; header++) {
        if (header->p_type == PT_GNU_RELRO) {
            const uint64_t start = bias + header->p_vaddr;
            return (struct read_only_part){.start = page_start_of(start, page_bytes),
                                           .end =
                                               page_start_of(start + header->p_memsz, page_bytes),
                                           .page_bytes = page_bytes};
        }
    }
    return (struct read_only_part){.start = 0};
}

static void close_part(const struct read_only_part *part)
{
    if (part->is_opened) {
        // If this is refused, the module is as safe as one without that protection.
        (void)sys_mprotect((void *)part->start, part->end - part->start, PROT_READ);
    }
}

static bool is_writable(struct read_only_part *part, uintptr_t slot)
{
    if (slot < part->start || slot >= part->end) {
        return true;
    }
    void *page = (void *)page_start_of(slot, part->page_bytes);
    const bool is_open = !sys_failed(sys_mprotect(page, part->page_bytes, PROT_READ | PROT_WRITE));
    part->is_opened = part->is_opened || is_open;
    return is_open;
}

static void set_slot(struct redirection *to, const ElfW(Rela) * relocation)
{
    const ElfW(Sym) *symbol = &to->section.symbols[ELF64_R_SYM(relocation->r_info)];
    const char *name = to->section.names + symbol->st_name;
    for (size_t i = 0; i < to->function_count; i++) {
        const struct redirected_function *function = &to->functions[i];
        if (strcmp(name, function->name) != 0) {
            continue;
        }
        const uintptr_t address = to->section.bias + relocation->r_offset;
        _Atomic uint64_t *slot = (_Atomic uint64_t *)address;
        // Relaxed: a thread that calls through the slot gets either function.
        if (function->from != 0 &&
            atomic_load_explicit(slot, memory_order_relaxed) == function->from &&
            is_writable(&to->part, address)) {
            // Release: what the new function reads was stored before.
            atomic_store_explicit(slot, function->to, memory_order_release);
        }
        return;
    }
}

void redirected_slots_set(const struct link_map *module,
                          struct bytes headers,
                          const struct redirected_function *functions,
                          size_t function_count)
{
    struct redirection to = {.part =
                                 read_only_part_of(module->l_addr, headers, getauxval(AT_PAGESZ)),
                             .functions = functions,
                             .function_count = function_count};
    if (!dynamic_section_read(module->l_addr, module->l_ld, &to.section)) {
        return;
    }
    for (size_t kind = 0; kind < ARRAY_LEN(to.section.relocations); kind++) {
        const ElfW(Rela) *first = to.section.relocations[kind].first;
        const size_t count =
            first != NULL ? to.section.relocations[kind].bytes / sizeof(ElfW(Rela)) : 0;
        for (size_t i = 0; i < count; i++) {
            if (ELF64_R_SYM(first[i].r_info) != 0) {
                set_slot(&to, &first[i]);
            }
        }
    }
    close_part(&to.part);
}
