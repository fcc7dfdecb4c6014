// SPDX-License-Identifier: MIT
// agent_modules: the agent's part of module_table.h: a list that needs neither libc nor the loader.
//
// The recorder lists the modules from /proc/PID/maps before it enables the agent. Afterwards the
// patched _dl_debug_state, which the loader calls under its own lock whenever its list is complete,
// lists them again: modules that are never unloaded are kept, the others come from the loader's
// lists, one for each namespace of dlmopen (glibc 2.35 and newer link them). There are two lists of
// ours. A reader finds a module in the current one and begins again if that was replaced meanwhile.
// Paths are only ever added to one pool.
//
// Context: T. Changes only by the thread that has the loader's lock. Failure: modules beyond
// AGENT_MODULES_MAX, and paths beyond the pool, are not listed; walks follow frame pointers there.
#include <elf.h>
#include <link.h>
#include <stddef.h>

#include "base/page_alloc.h"
#include "base/search.h"
#include "base/sys.h"
#include "target/agent/agent_modules.h"
#include "target/preload/process/process.h"
#include "target/unwind/environment/module_table.h"
#include "target/unwind/unwind.h"
#include "thread_way.h"

enum {
    PAGES_SEARCHED = 1 << 16, // for the beginning of a module: 256 MiB
    HOLE_PAGES_MAX = 1 << 9,  // unreadable, between parts that may be 2 MiB apart
    NAMESPACES_MAX = 64,      // glibc has 16
    LINKED_VERSION = 2,       // of struct r_debug, since which the loader's lists are linked
};

static const struct agent_module *find(const struct agent_module_list *list, uint64_t pc)
{
    const size_t next = FIRST_WHERE(at, list->count, list->modules[at].start > pc);
    return next != 0 && pc < list->modules[next - 1].end ? &list->modules[next - 1] : NULL;
}

// Copy the module of `pc` from the current list.
static bool find_module(uint64_t pc, struct agent_module *out)
{
    const struct agent_attachment *a = agent_attachment();
    for (;;) {
        // Acquire: pairs with the release in module_table_refresh: the list is complete.
        const uint32_t count = atomic_load_explicit(&a->list_count, memory_order_acquire);
        const struct agent_module *found = find(&a->lists[count % 2], pc);
        const struct agent_module copy = found != NULL ? *found : (struct agent_module){0};
        atomic_thread_fence(memory_order_acquire); // the copy comes before the second look
        if (atomic_load_explicit(&a->list_count, memory_order_relaxed) == count) {
            *out = copy;
            return found != NULL;
        }
    }
}

bool module_table_find(uint64_t pc, struct module_span *out)
{
    struct agent_module module;
    if (!find_module(pc, &module)) {
        return false;
    }
    struct module_span span = {
        .start = module.start,
        .end = module.end,
        .bias = module.bias,
        .headers = {(const uint8_t *)module.headers, module.header_count * sizeof(Elf64_Phdr)},
        .hdr_addr = module.eh_frame_hdr,
        .tables = {module.tables_bytes != 0 ? (const uint8_t *)module.eh_frame_hdr : NULL,
                   module.tables_bytes},
        .path = agent_attachment()->paths + module.path,
        .identity = (uint64_t)agent_attachment()->paths + module.path,
    };
    // The headers of what is never unloaded can be read at any time.
    if ((module.flags & AGENT_MODULE_STAYS) != 0 && span.headers.len > 0 &&
        !module_table_narrow(pc, &span)) {
        return false;
    }
    *out = span;
    return true;
}

bool module_table_find_unread(uint64_t pc, struct module_span *out)
{
    return module_table_find(pc, out);
}

bool module_table_name_unread(struct module_span *span, char *path, size_t path_bytes)
{
    (void)span; // has both already
    (void)path;
    (void)path_bytes;
    return true;
}

bool module_table_stays(uint64_t pc)
{
    struct agent_module module;
    return find_module(pc, &module) && (module.flags & AGENT_MODULE_STAYS) != 0;
}

uint32_t agent_module_flags_at(uint64_t pc)
{
    struct agent_module module;
    return find_module(pc, &module) ? module.flags : 0;
}

bool module_table_is_listed(void)
{
    return true;
}

bool module_table_needs_refresh(void)
{
    return true;
}

static bool is_text_at(const char *text, const char *at, const char *end)
{
    while (at < end && *text == *at && *text != 0) {
        text++;
        at++;
    }
    return at < end && *text == *at;
}

// Return the path's place in the pool, and add it if needed. 0, the empty path, if there is no
// room.
static uint32_t intern(struct agent_attachment *a, const char *path)
{
    const char *end = a->paths + a->paths_bytes;
    for (const char *at = a->paths; at < end; at += __builtin_strlen(at) + 1) {
        if (is_text_at(path, at, end)) {
            return (uint32_t)(at - a->paths);
        }
    }
    const size_t bytes = __builtin_strlen(path) + 1;
    if (bytes > AGENT_PATHS_BYTES - a->paths_bytes) {
        return 0;
    }
    const uint32_t place = a->paths_bytes;
    __builtin_memcpy(a->paths + place, path, bytes);
    a->paths_bytes += (uint32_t)bytes;
    return place;
}

static const char *name_of(const char *path)
{
    const char *name = path;
    for (; *path != 0; path++) {
        name = *path == '/' ? path + 1 : name;
    }
    return name;
}

// Complete a module that the loader has at `path`. The recorder may have listed the file by another
// path, for example below /usr/lib instead of /lib: then that one stays, so that a recording does
// not have the module twice. So do unwind tables that the recorder made for it, and what it said of
// its functions.
static void complete(struct agent_attachment *a,
                     const struct agent_module_list *before,
                     const char *path,
                     struct agent_module *module)
{
    const struct agent_module *known = find(before, module->start);
    if (known == NULL || known->start != module->start || known->bias != module->bias ||
        !is_text_at(name_of(path), name_of(a->paths + known->path), a->paths + a->paths_bytes)) {
        module->path = intern(a, path);
        return;
    }
    module->path = known->path;
    module->flags = known->flags;
    if (known->tables_bytes != 0) {
        module->eh_frame_hdr = known->eh_frame_hdr;
        module->tables_bytes = known->tables_bytes;
    }
}

// Add a module that is not in the list. The vDSO may be in a hole of the loader.
static void add(struct agent_module_list *list, const struct agent_module *module)
{
    const struct agent_module *found = find(list, module->start);
    if (list->count == AGENT_MODULES_MAX || (found != NULL && found->start == module->start)) {
        return;
    }
    uint32_t at = list->count++;
    for (; at > 0 && list->modules[at - 1].start > module->start; at--) {
        list->modules[at] = list->modules[at - 1];
    }
    list->modules[at] = *module;
}

// Whether the recorder has listed a module of the loader's list.
static bool is_listed(const struct agent_module_list *list, const struct link_map *map)
{
    const struct agent_module *found = find(list, (uint64_t)map->l_ld);
    return found != NULL && found->bias == map->l_addr;
}

// The modules of the loader's lists stay, because this thread has its lock. What is below one or in
// a hole of it another thread may unmap, so it is not read here.
static bool begins_module(uint64_t start)
{
    uint32_t magic;
    __builtin_memcpy(&magic, ELFMAG, sizeof(magic));
    return sys_has_word(start, magic);
}

static struct bytes headers_at(uint64_t start, const struct link_map *map)
{
    const struct bytes none = {NULL, 0};
    const struct bytes headers =
        begins_module(start) ? module_table_headers(start, UINT64_MAX) : none;
    size_t index = 0;
    const Elf64_Phdr *dynamic = module_table_next_header(headers, PT_DYNAMIC, &index);
    return dynamic != NULL && map->l_addr + dynamic->p_vaddr == (uint64_t)map->l_ld ? headers
                                                                                    : none;
}

// Return the program headers of a module of the loader's list; empty if there are none. A module
// whose lowest address in the file is not 0 does not begin at the address by which it was moved,
// where something else may be, or nothing: then it begins before its dynamic section. Between its
// code and its data may be a hole: linkers place these 64 KiB apart for AArch64.
static struct bytes headers_of(const struct link_map *map)
{
    struct bytes headers = headers_at(map->l_addr, map);
    uint64_t at = grain_start((uint64_t)map->l_ld);
    uint32_t hole = 0; // pages since the last one that could be read
    for (uint32_t i = 0; headers.len == 0 && i < PAGES_SEARCHED && hole < HOLE_PAGES_MAX; i++) {
        hole = sys_is_readable(at) ? 0 : hole + 1;
        if (hole == 0 && begins_module(at)) {
            return headers_at(at, map);
        }
        at -= PAGE_GRAIN;
    }
    return headers;
}

// Describe a module of the loader's list, by its own headers; false if it has none at its start.
static bool describe(const struct link_map *map, struct agent_module *out)
{
    const struct bytes headers = headers_of(map);
    *out = (struct agent_module){.bias = map->l_addr,
                                 .headers = (uint64_t)headers.data,
                                 .header_count = (uint32_t)(headers.len / sizeof(Elf64_Phdr))};
    size_t index = 0;
    const Elf64_Phdr *header = module_table_next_header(headers, PT_GNU_EH_FRAME, &index);
    out->eh_frame_hdr = header != NULL ? map->l_addr + header->p_vaddr : 0;
    index = 0;
    while ((header = module_table_next_header(headers, PT_LOAD, &index)) != NULL) {
        if (out->end == 0) {
            out->start = grain_start(map->l_addr + header->p_vaddr);
        }
        out->end = map->l_addr + header->p_vaddr + header->p_memsz;
    }
    return out->end > out->start;
}

// Whether a module of `list` is missing in `other`.
static bool is_any_missing(const struct agent_module_list *list,
                           const struct agent_module_list *other)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct agent_module *found = find(other, list->modules[i].start);
        if (found == NULL || found->end != list->modules[i].end ||
            found->path != list->modules[i].path) {
            return true;
        }
    }
    return false;
}

// Return the list of the next namespace, NULL behind the last one.
static const struct r_debug *next_namespace(const struct r_debug *loader)
{
    const struct r_debug_extended *linked = (const struct r_debug_extended *)(const void *)loader;
    return loader->r_version >= LINKED_VERSION ? (const void *)linked->r_next : NULL;
}

// Whether no namespace is being changed.
static bool is_complete(const struct r_debug *loader)
{
    for (int i = 0; loader != NULL && i < NAMESPACES_MAX; i++) {
        if (loader->r_state != RT_CONSISTENT) {
            return false;
        }
        loader = next_namespace(loader);
    }
    return true;
}

// Add the modules of one namespace.
static void add_namespace(struct agent_attachment *a,
                          const struct agent_module_list *before,
                          const struct r_debug *loader,
                          struct agent_module_list *list)
{
    for (const struct link_map *map = loader->r_map; map != NULL; map = map->l_next) {
        struct agent_module module;
        if (!is_listed(list, map) && describe(map, &module)) {
            complete(a, before, map->l_name != NULL ? map->l_name : "", &module);
            add(list, &module);
        }
    }
}

void module_table_refresh(void)
{
    struct agent_attachment *a = agent_attachment();
    const struct r_debug *loader = (const struct r_debug *)g_agent_page.loader_list;
    if (loader == NULL || !is_complete(loader)) {
        return;
    }
    // Relaxed: only written here, under the loader's lock.
    const uint32_t count = atomic_load_explicit(&a->list_count, memory_order_relaxed);
    const struct agent_module_list *before = &a->lists[count % 2];
    struct agent_module_list *list = &a->lists[(count + 1) % 2];
    // Pairs with the fence in find_module: who sees what is written here sees that this list was
    // replaced before.
    atomic_thread_fence(memory_order_release);
    list->count = 0;
    for (uint32_t i = 0; i < before->count; i++) {
        if ((before->modules[i].flags & AGENT_MODULE_STAYS) != 0) {
            add(list, &before->modules[i]);
        }
    }
    for (int i = 0; loader != NULL && i < NAMESPACES_MAX; i++) {
        add_namespace(a, before, loader, list);
        loader = next_namespace(loader);
    }
    const bool is_unloaded = is_any_missing(before, list);
    g_agent_page.load_count += is_any_missing(list, before);
    // Release: pairs with the acquire in find_module.
    atomic_store_explicit(&a->list_count, count + 1, memory_order_release);
    if (is_unloaded) {
        unwind_flush();
        process_code_unloaded();
    }
}
