// SPDX-License-Identifier: MIT
// module_table: see module_table.h.
#include "unwind/module_table.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/cursor.h"
#include "base/page_alloc.h"

#define LIST_SPANS_MAX 2048u

struct module_list {
    uint32_t count;
    struct module_span spans[LIST_SPANS_MAX]; // sorted by start
};

// The one table of the process: the list in force, and the one before it.
static struct {
    _Atomic(struct module_list *) current;
    struct module_list *spare; // only refresh uses it
    atomic_flag refreshing;
} g_modules = {.refreshing = ATOMIC_FLAG_INIT};

extern int _dl_find_object(void *pc, struct dl_find_object *result) __attribute__((weak));

bool module_table_needs_refresh(void)
{
    return _dl_find_object == NULL;
}

bool module_table_find(uint64_t pc, struct module_span *out)
{
    if (module_table_needs_refresh()) {
        return module_table_find_listed(pc, out);
    }
    struct dl_find_object found;
    if (_dl_find_object((void *)pc, &found) != 0) {
        return false;
    }
    const struct link_map *map = found.dlfo_link_map;
    *out = (struct module_span){.start = (uint64_t)found.dlfo_map_start,
                                .end = (uint64_t)found.dlfo_map_end,
                                .bias = map != NULL ? map->l_addr : 0,
                                .hdr_addr = (uint64_t)found.dlfo_eh_frame,
                                .path = map != NULL && map->l_name != NULL ? map->l_name : ""};
    return true;
}

bool module_table_find_listed(uint64_t pc, struct module_span *out)
{
    // Acquire pairs with the release in module_table_refresh: the list is complete.
    const struct module_list *list = atomic_load_explicit(&g_modules.current, memory_order_acquire);
    uint32_t low = 0;
    uint32_t high = list != NULL ? list->count : 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list->spans[middle].start <= pc) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || pc >= list->spans[low - 1].end) {
        return false;
    }
    *out = list->spans[low - 1];
    return true;
}

static int list_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct module_list *list = context;
    struct module_span span = {.start = UINT64_MAX,
                               .bias = info->dlpi_addr,
                               .path = info->dlpi_name != NULL ? info->dlpi_name : ""};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD) {
            span.start = start < span.start ? start : span.start;
            span.end = start + header->p_memsz > span.end ? start + header->p_memsz : span.end;
        } else if (header->p_type == PT_GNU_EH_FRAME) {
            span.hdr_addr = start;
        }
    }
    span.start &= ~(uint64_t)(PAGE_BYTES - 1);
    if (span.start >= span.end || list->count == LIST_SPANS_MAX) {
        return 0;
    }
    uint32_t at = list->count++;
    for (; at > 0 && list->spans[at - 1].start > span.start; at--) {
        list->spans[at] = list->spans[at - 1];
    }
    list->spans[at] = span;
    return 0;
}

void module_table_refresh(void)
{
    // Whoever refreshes at this moment sees what we would see, or is about to be called again.
    if (atomic_flag_test_and_set_explicit(&g_modules.refreshing, memory_order_acquire)) {
        return;
    }
    struct module_list *list = g_modules.spare;
    if (list == NULL) {
        list = page_alloc(sizeof(*list));
    }
    if (list != NULL) {
        list->count = 0;
        (void)dl_iterate_phdr(list_module, list);
        g_modules.spare = atomic_load_explicit(&g_modules.current, memory_order_relaxed);
        // Release: see module_table_find_listed.
        atomic_store_explicit(&g_modules.current, list, memory_order_release);
    }
    atomic_flag_clear_explicit(&g_modules.refreshing, memory_order_release);
}

// The program headers of a module, read from the image that the loader mapped: its first page,
// which is whole in memory though the module may be shorter. Empty if the image does not begin with
// an ELF header of our kind.
static struct bytes program_headers(const struct module_span *span)
{
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)span->start;
    const uint8_t *ident = elf->e_ident;
    bool is_elf = ident[EI_MAG0] == ELFMAG0 && ident[EI_MAG1] == ELFMAG1 &&
                  ident[EI_MAG2] == ELFMAG2 && ident[EI_MAG3] == ELFMAG3 &&
                  ident[EI_CLASS] == ELFCLASS64;
    if (!is_elf || elf->e_phentsize != sizeof(Elf64_Phdr)) {
        return (struct bytes){NULL, 0};
    }
    uint64_t len = (uint64_t)elf->e_phnum * sizeof(Elf64_Phdr);
    if (elf->e_phoff > PAGE_BYTES || len > PAGE_BYTES - elf->e_phoff) {
        return (struct bytes){NULL, 0};
    }
    return (struct bytes){(const uint8_t *)elf + elf->e_phoff, (size_t)len};
}

// The next header of `type` at or after *index; NULL if there is none. Moves *index past it.
static const Elf64_Phdr *next_header(struct bytes headers, uint32_t type, size_t *index)
{
    const Elf64_Phdr *all = (const Elf64_Phdr *)(const void *)headers.data;
    while (*index < headers.len / sizeof(Elf64_Phdr)) {
        const Elf64_Phdr *header = &all[(*index)++];
        if (header->p_type == type) {
            return header;
        }
    }
    return NULL;
}

bool module_table_unwind(const struct module_span *span, struct eh_table *out)
{
    if (span->hdr_addr < span->start || span->hdr_addr >= span->end) {
        return false;
    }
    struct bytes headers = program_headers(span);
    size_t index = 0;
    const Elf64_Phdr *load = NULL;
    while ((load = next_header(headers, PT_LOAD, &index)) != NULL) {
        uint64_t start = span->bias + load->p_vaddr;
        if (span->hdr_addr >= start && span->hdr_addr - start < load->p_filesz) {
            *out = (struct eh_table){
                .image = {.bytes = {(const uint8_t *)start, load->p_filesz}, .addr = start},
                .hdr_addr = span->hdr_addr};
            return true;
        }
    }
    return false;
}

static struct bytes build_id_in_notes(struct bytes notes)
{
    struct cursor c = cursor_over(notes);
    while (cursor_left(&c) > 0) {
        uint32_t name_len = cursor_u32(&c);
        uint32_t data_len = cursor_u32(&c);
        uint32_t type = cursor_u32(&c);
        const uint8_t *name = cursor_take(&c, ((size_t)name_len + 3) & ~(size_t)3);
        const uint8_t *data = cursor_take(&c, ((size_t)data_len + 3) & ~(size_t)3);
        if (c.failed) {
            break;
        }
        if (type == NT_GNU_BUILD_ID && name_len == 4 && name[0] == 'G' && name[1] == 'N' &&
            name[2] == 'U') {
            return (struct bytes){data, data_len};
        }
    }
    return (struct bytes){NULL, 0};
}

struct bytes module_table_build_id(const struct module_span *span)
{
    struct bytes headers = program_headers(span);
    size_t index = 0;
    const Elf64_Phdr *note = NULL;
    while ((note = next_header(headers, PT_NOTE, &index)) != NULL) {
        uint64_t start = span->bias + note->p_vaddr;
        if (start < span->start || start >= span->end || note->p_filesz > span->end - start) {
            continue;
        }
        struct bytes found =
            build_id_in_notes((struct bytes){(const uint8_t *)start, note->p_filesz});
        if (found.len > 0) {
            return found;
        }
    }
    return (struct bytes){NULL, 0};
}
