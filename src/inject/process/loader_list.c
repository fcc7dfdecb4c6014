// SPDX-License-Identifier: MIT
// loader_list: see loader_list.h.
//
// Both glibc and musl set DT_DEBUG before they map libraries. glibc sets the state to RT_ADD
// meanwhile; musl writes the version and the head of the list when all is loaded.
#include "inject/process/loader_list.h"

#include <elf.h>
#include <link.h>

// Find the entry DT_DEBUG of a module. False: it has none.
static bool find_entry_of(const struct target_process *target,
                          const struct target_module *module,
                          uint64_t *out_addr)
{
    enum {
        ENTRIES_MAX = 256
    };
    for (uint64_t n = 0; module->has_interpreter && module->dynamic != 0 && n < ENTRIES_MAX; n++) {
        Elf64_Dyn entry;
        if (target_process_read(target, module->dynamic + n * sizeof(entry), &entry,
                                sizeof(entry)) != ERR_OK ||
            entry.d_tag == DT_NULL) {
            return false;
        }
        if (entry.d_tag == DT_DEBUG) {
            *out_addr = entry.d_un.d_ptr;
            return true;
        }
    }
    return false;
}

// Find that entry of the program.
static bool find_entry(const struct target_process *target, uint64_t *out_addr)
{
    for (size_t i = 0; i < target->modules.len; i++) {
        if (find_entry_of(target, target->modules.items + i, out_addr)) {
            return true;
        }
    }
    return false;
}

bool loader_list_is_program(const struct target_process *target, const struct target_module *module)
{
    uint64_t unused = 0;
    return module->has_interpreter &&
           (find_entry_of(target, module, &unused) || !find_entry(target, &unused));
}

uint64_t loader_list_find(const struct target_process *target)
{
    uint64_t addr = 0;
    return find_entry(target, &addr) ? addr : 0;
}

bool loader_list_has_program(const struct target_process *target)
{
    for (size_t i = 0; i < target->modules.len; i++) {
        if (!target->modules.items[i].is_vdso) {
            return true;
        }
    }
    return false;
}

bool loader_list_is_complete(const struct target_process *target)
{
    uint64_t addr = 0;
    struct r_debug list;
    if (!loader_list_has_program(target)) {
        return false;
    }
    if (!find_entry(target, &addr)) {
        return true;
    }
    return addr != 0 && target_process_read(target, addr, &list, sizeof(list)) == ERR_OK &&
           list.r_version > 0 && list.r_map != NULL && list.r_state == RT_CONSISTENT;
}
