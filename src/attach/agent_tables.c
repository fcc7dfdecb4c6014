// SPDX-License-Identifier: MIT
#include "attach/agent_tables.h"

#include <elf.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "attach/agent_bytes.h"
#include "attach/attach_plan.h"
#include "base/compiler.h"
#include "host/os/proc_file.h"
#include "host/text/proc_text.h"
#include "inject/process/loader_list.h"
#include "inject/process/proc_files.h"
#include "session/agent_page.h"

struct tables {
    struct agent_patch patches[AGENT_PATCHES_MAX];
    struct agent_module_list list;
    uint32_t paths_bytes;
    char paths[AGENT_PATHS_BYTES];
    uint32_t omitted;
};

static void add_module(struct tables *tables, const struct agent_module *module, const char *path)
{
    const size_t bytes = strlen(path) + 1;
    if (tables->list.count == AGENT_MODULES_MAX ||
        bytes > AGENT_PATHS_BYTES - tables->paths_bytes) {
        tables->omitted++;
        return;
    }
    uint32_t at = tables->list.count++;
    for (; at > 0 && tables->list.modules[at - 1].start > module->start; at--) {
        tables->list.modules[at] = tables->list.modules[at - 1];
    }
    tables->list.modules[at] = *module;
    if (bytes > 1) { // else the first path
        tables->list.modules[at].path = tables->paths_bytes;
        memcpy(tables->paths + tables->paths_bytes, path, bytes);
        tables->paths_bytes += (uint32_t)bytes;
    }
}

// The executable is the module that the loader started, or the only one.
static bool is_executable(const struct target_process *target, const struct target_module *module)
{
    return loader_list_is_program(target, module) || (module->dynamic == 0 && !module->is_vdso) ||
           target->modules.len == 1;
}

// Neither the program nor its loader nor libc is ever unloaded. So walks may follow guessed frames
// there. glibc's has an interpreter too.
static bool
stays(const struct target_module *module, bool is_main, uint32_t flags, uint64_t loader_list)
{
    const bool is_loader = loader_list - module->start < module->end - module->start;
    return is_main || is_loader || module->is_vdso || module->has_interpreter ||
           (flags & AGENT_MODULE_IS_LIBC) != 0;
}

// Let a module have the tables that were made for it.
static void add_unwind(struct agent_module *module, const struct agent_unwind_vec *unwind)
{
    for (size_t i = 0; i < unwind->len; i++) {
        if (unwind->items[i].module_start == module->start) {
            module->eh_frame_hdr = unwind->items[i].addr;
            module->tables_bytes = (uint32_t)unwind->items[i].bytes;
        }
    }
}

// Return what is known of the functions of a library.
static uint32_t flags_of_library(const struct attach *attach, const struct target_module *module)
{
    for (size_t i = 0; i < attach->modules.len; i++) {
        const struct attach_module *found = attach->modules.items + i;
        if (found->module.start == module->start && found->scan.is_library &&
            allocator_scan_has_allocator(&found->scan)) {
            return found->scan.is_libc ? AGENT_MODULE_IS_LIBC : AGENT_MODULE_ALLOCATES;
        }
    }
    return 0;
}

// Whether the program's loader was executed, with the program's name: then the name of what runs is
// the loader's, which is another module.
static bool was_loader_executed(const struct target_process *target,
                                const struct target_module *program)
{
    char path[PATH_MAX];
    (void)proc_file_executable(target->live_tid, path); // else no module is it
    for (size_t i = 0; i < target->modules.len; i++) {
        const struct target_module *module = target->modules.items + i;
        if (strcmp(target_process_path(target, module->path), path) == 0) {
            return !target_process_is_path(target, module->path, program->path);
        }
    }
    return false;
}

static void list_modules(struct tables *tables,
                         const struct attach *attach,
                         uint64_t loader_list,
                         const struct agent_unwind_vec *unwind)
{
    const struct target_process *target = &attach->inject.target;
    for (size_t i = 0; i < target->modules.len; i++) {
        const struct target_module *module = target->modules.items + i;
        const bool is_main = is_executable(target, module);
        const uint32_t flags = flags_of_library(attach, module);
        struct agent_module entry = {
            .start = module->start,
            .end = module->end,
            .bias = module->load_bias,
            .eh_frame_hdr = module->eh_frame_hdr,
            .headers = module->headers,
            .header_count = module->header_count,
            .flags = flags | (stays(module, is_main, flags, loader_list) ? AGENT_MODULE_STAYS : 0),
        };
        add_unwind(&entry, unwind);
        const char *path =
            module->is_vdso ? "linux-vdso.so.1" : target_process_path(target, module->path);
        const bool has_executed_name = is_main && !was_loader_executed(target, module);
        add_module(tables, &entry, has_executed_name ? "" : path);
    }
}

// List the agent, for walks that begin in its own frames.
static void list_agent(struct tables *tables, uint64_t image_addr)
{
    const uint8_t *file = agent_bytes().data;
    Elf64_Ehdr header;
    memcpy(&header, file, sizeof(header)); // it is ours, and was mapped
    struct agent_module module = {.start = image_addr,
                                  .bias = image_addr,
                                  .headers = image_addr + header.e_phoff,
                                  .header_count = header.e_phnum,
                                  .flags = AGENT_MODULE_STAYS};
    for (size_t i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, file + header.e_phoff + i * sizeof(segment), sizeof(segment));
        if (segment.p_type == PT_LOAD) {
            module.end = image_addr + segment.p_vaddr + segment.p_memsz;
        } else if (segment.p_type == PT_GNU_EH_FRAME) {
            module.eh_frame_hdr = image_addr + segment.p_vaddr;
        }
    }
    add_module(tables, &module, "[cairn]");
}

// Return the first stack pointer of the process; 0: unknown.
static uint64_t read_stack_top(const struct target_process *target)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    return proc_files_read(target, target->live_tid, "stat", &text, NULL) == ERR_OK
               ? proc_text_stack_top(strbuf_text(&text))
               : 0;
}

static enum err
write_tables(const struct target_process *target, const struct tables *tables, uint64_t attachment)
{
#define PLACE(field) (attachment + offsetof(struct agent_attachment, field))
    TRY(target_process_write(target, PLACE(patches), tables->patches, sizeof(tables->patches)));
    TRY(target_process_write(target, PLACE(lists), &tables->list,
                             offsetof(struct agent_module_list, modules) +
                                 tables->list.count * sizeof(tables->list.modules[0])));
    TRY(target_process_write(target, PLACE(paths_bytes), &tables->paths_bytes,
                             sizeof(tables->paths_bytes)));
    return target_process_write(target, PLACE(paths), tables->paths, tables->paths_bytes);
#undef PLACE
}

// Return the process's pid as it sees it itself.
static uint32_t read_inner_pid(const struct target_process *target)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    const uint32_t inner = proc_files_read(target, target->pid, "status", &text, NULL) == ERR_OK
                               ? proc_text_innermost_pid(strbuf_text(&text))
                               : 0;
    return inner != 0 ? inner : (uint32_t)target->pid;
}

static enum err write_page(const struct attach *attach,
                           const struct agent_places *places,
                           uint64_t stack_top,
                           uint64_t loader_list)
{
    const struct target_process *target = &attach->inject.target;
    const uint32_t pid = read_inner_pid(target);
    TRY(target_process_write(target, places->page + offsetof(struct agent_page, pid), &pid,
                             sizeof(pid)));
    TRY(target_process_write(target, places->page + offsetof(struct agent_page, process_flags),
                             &places->process_flags, sizeof(places->process_flags)));
    TRY(target_process_write(target, places->page + offsetof(struct agent_page, words),
                             &places->words, sizeof(places->words)));
    TRY(attach_plan_send_sizes(attach));
    // The fields from `attachment` to `python`, in their order.
    const uint64_t fields[] = {places->attachment,
                               places->process_page,
                               places->session,
                               stack_top,
                               loader_list,
                               attach->python.runtime,
                               attach->python.version,
                               attach->python.older,
                               attach->python.get_specific};
    _Static_assert(offsetof(struct agent_page, enabled) - offsetof(struct agent_page, attachment) ==
                       sizeof(fields),
                   "all of them");
    return target_process_write(target, places->page + offsetof(struct agent_page, attachment),
                                fields, sizeof(fields));
}

enum err agent_tables_write(const struct attach *attach,
                            const struct agent_places *places,
                            struct agent_gaps *gaps)
{
    const struct inject *inject = &attach->inject;
    const struct patch_plan *plan = &attach->plan;
    struct tables *tables = calloc(1, sizeof(*tables));
    if (tables == NULL) {
        return ERR_NO_MEMORY;
    }
    tables->paths_bytes = 1; // the empty path
    for (size_t i = 0; i < plan->patches.len; i++) {
        const struct patch *patch = plan->patches.items + i;
        if (patch->index < AGENT_PATCHES_MAX) {
            tables->patches[patch->index] = (struct agent_patch){.original = patch->trampoline_addr,
                                                                 .nothrow = patch->nothrow_addr};
        }
    }
    const uint64_t loader_list = loader_list_find(&inject->target);
    list_modules(tables, attach, loader_list, places->unwind);
    list_agent(tables, inject->image_addr);
    enum err err = write_tables(&inject->target, tables, places->attachment);
    const uint64_t stack_top = read_stack_top(&inject->target);
    *gaps =
        (struct agent_gaps){.omitted_modules = tables->omitted, .lacks_stack_top = stack_top == 0};
    free(tables);
    return err == ERR_OK ? write_page(attach, places, stack_top, loader_list) : err;
}
