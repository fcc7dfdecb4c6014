// SPDX-License-Identifier: MIT
// module_table: see module_table.h.
#include "target/unwind/environment/module_table.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "base/cursor.h"
#include "base/page_alloc.h"

#define LIST_SPANS_MAX 2048u

struct module_list {
    uint32_t count;
    struct module_span spans[LIST_SPANS_MAX]; // sorted by start
};

// The process's only table: the current list, and the one before it.
static struct {
    _Atomic(struct module_list *) current;
    struct module_list *spare; // only refresh uses it
    atomic_flag refreshing;
} g_modules = {.refreshing = ATOMIC_FLAG_INIT};

extern int _dl_find_object(void *pc, struct dl_find_object *result) __attribute__((weak));

struct bytes module_table_headers(uint64_t start)
{
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)start;
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

// Return the main program's headers, from the kernel or from a loader that was started by hand.
static struct bytes headers_of_main(void)
{
    const uint8_t *headers = (const uint8_t *)getauxval(AT_PHDR);
    const size_t count = headers != NULL ? getauxval(AT_PHNUM) : 0;
    return (struct bytes){headers, count * sizeof(Elf64_Phdr)};
}

// Return the next header of `type` at or after *index; NULL if there is none. Moves *index past it.
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

bool module_table_needs_refresh(void)
{
    return _dl_find_object == NULL;
}

bool module_table_is_listed(void)
{
    return atomic_load_explicit(&g_modules.current, memory_order_relaxed) != NULL;
}

bool module_table_find(uint64_t pc, struct module_span *out)
{
    if (module_table_needs_refresh()) {
        return module_table_find_listed(pc, out);
    }
    if (!module_table_find_unread(pc, out)) {
        return false;
    }
    const struct link_map *map = (const struct link_map *)out->link_map;
    out->path = map != NULL && map->l_name != NULL ? map->l_name : "";
    out->bias = map != NULL ? map->l_addr : 0;
    out->headers = *out->path == 0 ? headers_of_main() : module_table_headers(out->start);
    return true;
}

bool module_table_find_unread(uint64_t pc, struct module_span *out)
{
    struct dl_find_object found;
    if (_dl_find_object == NULL || _dl_find_object((void *)pc, &found) != 0) {
        return false;
    }
    *out = (struct module_span){.start = (uint64_t)found.dlfo_map_start,
                                .end = (uint64_t)found.dlfo_map_end,
                                .hdr_addr = (uint64_t)found.dlfo_eh_frame,
                                .path = "",
                                .link_map = (uint64_t)found.dlfo_link_map};
    return true;
}

bool module_table_stays(uint64_t pc)
{
    struct module_span unused;
    return module_table_find_listed(pc, &unused);
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

static uint64_t page_of(uint64_t addr)
{
    return addr & ~(uint64_t)(PAGE_BYTES - 1);
}

static void list_span(struct module_list *list, const struct module_span *span)
{
    if (span->start >= span->end || list->count == LIST_SPANS_MAX) {
        return;
    }
    uint32_t at = list->count++;
    for (; at > 0 && list->spans[at - 1].start > span->start; at--) {
        list->spans[at] = list->spans[at - 1];
    }
    list->spans[at] = *span;
}

// List a span for each run of segments without a free page in between; one span for a library.
static int list_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct module_span span = {
        .bias = info->dlpi_addr,
        .headers = {(const uint8_t *)info->dlpi_phdr, info->dlpi_phnum * sizeof(Elf64_Phdr)},
        .path = info->dlpi_name != NULL ? info->dlpi_name : ""};
    size_t index = 0;
    const Elf64_Phdr *header = next_header(span.headers, PT_GNU_EH_FRAME, &index);
    span.hdr_addr = header != NULL ? span.bias + header->p_vaddr : 0;
    index = 0;
    while ((header = next_header(span.headers, PT_LOAD, &index)) != NULL) { // by rising address
        const uint64_t start = page_of(span.bias + header->p_vaddr);
        if (span.end == 0) {
            span.start = start;
        } else if (span.path[0] == 0 && start > page_of(span.end + PAGE_BYTES - 1)) {
            list_span(context, &span);
            span.start = start;
        }
        span.end = span.bias + header->p_vaddr + header->p_memsz;
    }
    list_span(context, &span);
    return 0;
}

void module_table_refresh(void)
{
    // A thread that is refreshing now sees what we would see, or is about to be called again.
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

// Return the segment of the file's byte that is mapped at `addr`; NULL if there is none.
static const Elf64_Phdr *load_with(const struct module_span *span, uint64_t addr)
{
    size_t index = 0;
    const Elf64_Phdr *load = NULL;
    while ((load = next_header(span->headers, PT_LOAD, &index)) != NULL) {
        if (addr - span->bias - load->p_vaddr < load->p_filesz) { // wraps around if it is before
            return load;
        }
    }
    return NULL;
}

bool module_table_unwind(const struct module_span *span, struct eh_table *out)
{
    const Elf64_Phdr *load = load_with(span, span->hdr_addr);
    if (load == NULL) {
        return false;
    }
    const uint64_t start = span->bias + load->p_vaddr;
    *out = (struct eh_table){
        .image = {.bytes = {(const uint8_t *)start, load->p_filesz}, .addr = start},
        .hdr_addr = span->hdr_addr};
    return true;
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
    size_t index = 0;
    const Elf64_Phdr *note = NULL;
    while ((note = next_header(span->headers, PT_NOTE, &index)) != NULL) {
        const uint64_t start = span->bias + note->p_vaddr;
        const Elf64_Phdr *load = load_with(span, start);
        if (load == NULL || note->p_filesz > load->p_vaddr + load->p_filesz - note->p_vaddr) {
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
