// SPDX-License-Identifier: MIT
// module_loader: the part of module_table.h that asks the loader of this process.
#include "target/unwind/environment/module_table.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "base/page_alloc.h"
#include "base/search.h"
#include "base/sys.h"

#define LIST_SPANS_MAX   2048u
#define LATE_HEADERS_MAX 24u

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
extern struct r_debug _r_debug __attribute__((weak)); // musl lacks it

// Whether the dynamic loader is mapped there.
static bool is_loader(uint64_t start)
{
    return &_r_debug != NULL && start == _r_debug.r_ldbase;
}

// Return the main program's headers, from the kernel or from a loader that was started by hand.
static struct bytes headers_of_main(void)
{
    const uint8_t *headers = (const uint8_t *)getauxval(AT_PHDR);
    const size_t count = headers != NULL ? getauxval(AT_PHNUM) : 0;
    return (struct bytes){headers, count * sizeof(Elf64_Phdr)};
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
    if (module_table_needs_refresh() && module_table_find_listed(pc, out)) {
        return true;
    }
    if (!module_table_find_unread(pc, out)) {
        return false;
    }
    const struct link_map *map = (const struct link_map *)out->identity;
    out->path = map != NULL && map->l_name != NULL ? map->l_name : "";
    out->bias = map != NULL ? map->l_addr : 0;
    if (out->headers.len == 0) {
        out->headers =
            *out->path == 0 ? headers_of_main() : module_table_headers(out->start, out->end);
    }
    return true;
}

// Describe a module of the loader's list by a copy of its headers.
static bool describe_late(const struct link_map *map, struct module_span *out)
{
    struct {
        Elf64_Ehdr file;
        Elf64_Phdr headers[LATE_HEADERS_MAX];
    } copy;
    if (sys_copy_own(&copy, map->l_addr, sizeof(copy)) != sizeof(copy) ||
        copy.file.e_phoff != sizeof(copy.file) || copy.file.e_phnum > LATE_HEADERS_MAX) {
        return false;
    }
    const struct bytes headers = module_table_headers((uint64_t)&copy, UINT64_MAX);
    *out = (struct module_span){.path = ""};
    size_t index = 0;
    const Elf64_Phdr *header = module_table_next_header(headers, PT_GNU_EH_FRAME, &index);
    out->hdr_addr = header != NULL ? map->l_addr + header->p_vaddr : 0;
    index = 0;
    while ((header = module_table_next_header(headers, PT_LOAD, &index)) != NULL) {
        out->start = out->end == 0 ? grain_start(map->l_addr + header->p_vaddr) : out->start;
        out->end = map->l_addr + header->p_vaddr + header->p_memsz;
    }
    return true;
}

// Find a module that was loaded after the list was made. The loader's own list may change at any
// moment, so the kernel copies it.
static bool find_late(uint64_t pc, struct module_span *out)
{
    uint64_t at = &_r_debug != NULL ? (uint64_t)_r_debug.r_map : 0;
    for (uint32_t i = 0; i < LIST_SPANS_MAX && at != 0; i++) {
        struct link_map map;
        struct module_span span;
        if (sys_copy_own(&map, at, sizeof(map)) != sizeof(map)) {
            return false;
        }
        if (!module_table_find_listed((uint64_t)map.l_ld, &span) && describe_late(&map, &span) &&
            pc - span.start < span.end - span.start) { // wraps around if it is before
            span.identity = at;
            *out = span;
            return true;
        }
        at = (uint64_t)map.l_next;
    }
    return false;
}

// glibc takes its loader for one piece, though the kernel has mapped each segment. It is never
// unloaded, so its headers can be read. Narrow its span; false if `pc` is in a hole of it.
static bool narrow_loader(uint64_t pc, struct module_span *span)
{
    if (!is_loader(span->start)) {
        return true;
    }
    span->bias = span->start;
    span->headers = module_table_headers(span->start, span->end);
    return module_table_narrow(pc, span);
}

bool module_table_find_unread(uint64_t pc, struct module_span *out)
{
    struct dl_find_object found;
    if (_dl_find_object == NULL) {
        return find_late(pc, out);
    }
    if (_dl_find_object((void *)pc, &found) != 0) {
        return false;
    }
    struct module_span span = {.start = (uint64_t)found.dlfo_map_start,
                               .end = (uint64_t)found.dlfo_map_end,
                               .hdr_addr = (uint64_t)found.dlfo_eh_frame,
                               .path = "",
                               .identity = (uint64_t)found.dlfo_link_map};
    if (!narrow_loader(pc, &span)) {
        return false;
    }
    *out = span;
    return true;
}

bool module_table_name_unread(struct module_span *span, char *path, size_t path_bytes)
{
    uint64_t name[2]; // l_addr, l_name
    _Static_assert(offsetof(struct link_map, l_name) == sizeof(name[0]), "the second word");
    if (sys_copy_own(name, span->identity, sizeof(name)) != sizeof(name) ||
        sys_failed(sys_copy_own(path, name[1], path_bytes - 1))) {
        return false;
    }
    span->bias = name[0];
    span->path = path;
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
    const uint32_t count = list != NULL ? list->count : 0;
    const size_t next = FIRST_WHERE(at, count, list->spans[at].start > pc);
    if (next == 0 || pc >= list->spans[next - 1].end) {
        return false;
    }
    *out = list->spans[next - 1];
    return true;
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

// Whether the kernel has mapped a module, so that its holes are not its own.
static bool is_of_kernel(const struct module_span *span)
{
    return span->path[0] == 0 || is_loader(span->bias);
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
    const Elf64_Phdr *header = module_table_next_header(span.headers, PT_GNU_EH_FRAME, &index);
    span.hdr_addr = header != NULL ? span.bias + header->p_vaddr : 0;
    const bool is_whole = !is_of_kernel(&span);
    struct module_run run;
    index = 0;
    while (module_table_next_run(span.headers, &index, &run)) {
        if (span.end == 0 || !is_whole) {
            list_span(context, &span);
            span.start = span.bias + run.start;
        }
        span.end = span.bias + run.end;
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
