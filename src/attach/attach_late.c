// SPDX-License-Identifier: MIT
// attach_late: attach_late() and attach_late_copy() of attach.h, for modules that came later.
//
// What is hooked already is known by the note in the process (inject_note.h) and by the code: a
// module one of whose entries has its jump needs nothing. A module that was unloaded and loaded
// again has its old bytes; it gets the places and the near block that it had before, so that a
// program which does so again and again does not fill the note. Modules follow one another, each
// with a stop of its own, because there is rarely more than one. They get no unwind tables of our
// making: libraries have their own.
// Context: H, one thread.
#include <stddef.h>
#include <string.h>

#include "attach/agent_bytes.h"
#include "attach/attach.h"
#include "attach/attach_plan.h"
#include "host/containers/vec.h"
#include "inject/api_pointers.h"
#include "inject/process/target_reading.h"
#include "inject/process/target_refusal.h"
#include "session/agent_page.h"

DEFINE_VEC(module_start_vec, uint64_t);

static bool has_bytes(const struct attach *attach, uint64_t addr, const uint8_t *bytes)
{
    uint8_t found[PATCH_BYTES];
    return target_process_read(&attach->inject.target, addr, found, sizeof(found)) == ERR_OK &&
           memcmp(found, bytes, sizeof(found)) == 0;
}

static bool is_in(const struct inject_note_patch *noted, const struct target_module *module)
{
    return noted->entry >= module->start && noted->entry < module->end;
}

static bool is_hooked(const struct attach *attach, const struct target_module *module)
{
    const struct inject_note *note = &attach->inject.note;
    for (size_t i = 0; i < note->patch_count; i++) {
        const struct inject_note_patch *noted = note->patches + i;
        if (is_in(noted, module) && has_bytes(attach, noted->entry, noted->new_bytes)) {
            return true;
        }
    }
    return false;
}

// Return the place of the module's first patch when it was hooked the last time; else the next free
// one. Patches of a module are in the order of their addresses.
static uint32_t first_index_of(const struct attach *attach, const struct target_module *module)
{
    const struct inject_note *note = &attach->inject.note;
    uint32_t first = note->patch_count;
    for (uint32_t i = note->patch_count; i-- > 0;) {
        const struct inject_note_patch *noted = note->patches + i;
        const bool is_its =
            is_in(noted, module) && has_bytes(attach, noted->entry, noted->old_bytes);
        const bool has_begun = first != note->patch_count;
        if (has_begun && (!is_its || noted->entry >= note->patches[first].entry)) {
            break;
        }
        first = is_its ? i : first;
    }
    return first;
}

// Tell the agent where the original functions continue.
static enum err write_agents_patches(const struct attach *attach, struct err_info *info)
{
    const struct target_process *target = &attach->inject.target;
    uint64_t attachment = 0;
    enum err err =
        target_process_read(target, attach->page_addr + offsetof(struct agent_page, attachment),
                            &attachment, sizeof(attachment));
    for (size_t i = 0; err == ERR_OK && i < attach->plan.patches.len; i++) {
        const struct patch *patch = attach->plan.patches.items + i;
        const struct agent_patch row = {.original = patch->trampoline_addr,
                                        .nothrow = patch->nothrow_addr};
        err = target_process_write(target,
                                   attachment + offsetof(struct agent_attachment, patches) +
                                       patch->index * sizeof(row),
                                   &row, sizeof(row));
    }
    return err == ERR_OK ? ERR_OK : target_refusal_of_write(target, info);
}

static enum err hook_module(struct attach *attach,
                            const struct target_module *module,
                            const struct attach_options *options,
                            struct err_info *info)
{
    attach_plan_release(attach);
    TRY(attach_plan_examine(attach, module, options, info));
    if (attach->modules.len == 0) {
        return ERR_OK;
    }
    unwind_copy_release(&attach->modules.items[0].unwind);
    attach->plan.first_index = first_index_of(attach, module);
    TRY(attach_plan_nears(attach, info));
    TRY(inject_map(&attach->inject, agent_bytes(), attach->nears.items, attach->nears.len, info));
    TRY(attach_plan_patches(attach, info));
    if (attach->plan.patches.len == 0) {
        return ERR_OK;
    }
    TRY(write_agents_patches(attach, info));
    if (attach_plan_send_sizes(attach) != ERR_OK) {
        return target_refusal_of_write(&attach->inject.target, info);
    }
    TRY(inject_patch(&attach->inject, &attach->plan, info));
    attach->hooked_count += attach->plan.patches.len;
    return ERR_OK;
}

static enum err list_new(const struct attach *attach,
                         const struct attach_options *options,
                         struct module_start_vec *out)
{
    const struct target_module_vec *modules = &attach->inject.target.modules;
    for (size_t i = 0; i < modules->len; i++) {
        const struct target_module *module = modules->items + i;
        if (!attach_plan_is_plain(attach, module, options) && !is_hooked(attach, module)) {
            TRY(module_start_vec_push(out, module->start));
        }
    }
    return ERR_OK;
}

// Hooking a module reads the modules anew.
static enum err hook_at(struct attach *attach,
                        uint64_t start,
                        const struct attach_options *options,
                        struct err_info *info)
{
    const struct target_module_vec *modules = &attach->inject.target.modules;
    for (size_t i = 0; i < modules->len; i++) {
        if (modules->items[i].start == start) {
            const struct target_module module = modules->items[i];
            return hook_module(attach, &module, options, info);
        }
    }
    return ERR_OK; // it is unloaded
}

enum err
attach_late(struct attach *attach, const struct attach_options *options, struct err_info *info)
{
    CLEANUP(module_start_vec_release) struct module_start_vec starts = {0};
    strbuf_clear(&attach->hidden);
    strbuf_clear(&attach->unpatched);
    attach->unpatched_count = 0;
    attach_hook_vec_clear(&attach->hooks);
    strbuf_clear(&attach->hook_texts);
    strbuf_clear(&attach->unread);
    TRY(target_process_refresh(&attach->inject.target, info));
    attach_plan_note_modules(attach);
    api_pointers_give(&attach->inject.target,
                      inject_symbol(&attach->inject, agent_bytes(), API_TABLE_SYMBOL));
    TRY(list_new(attach, options, &starts));
    for (size_t i = 0; i < starts.len; i++) {
        TRY(hook_at(attach, starts.items[i], options, info));
    }
    return ERR_OK;
}

enum err attach_late_copy(struct attach *attach,
                          int pid,
                          const struct attach_options *options,
                          struct err_info *info)
{
    *attach = (struct attach){0};
    const struct inject_options injection = {.keeps_patches = true};
    TRY(inject_open(&attach->inject, pid, &injection, info));
    attach->page_addr = inject_symbol(&attach->inject, agent_bytes(), AGENT_PAGE_SYMBOL);
    const enum err err = attach_late(attach, options, info);
    if (err != ERR_OK) {
        attach_release(attach);
    }
    return err;
}
