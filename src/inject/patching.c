// SPDX-License-Identifier: MIT
#include "inject/patching.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "inject/process/target_refusal.h"
#include "inject/process/threads/stop_scan.h"
#include "inject/process/threads/thread_regs.h"

struct application {
    const struct patch_plan *plan;
    struct address_range_vec inside; // sorted; what is behind an entry and overwritten
};

struct restoration {
    const struct inject_note_patch *patches;
    size_t count;
};

static bool has_bytes(const struct target_process *target, uint64_t addr, const uint8_t *bytes)
{
    uint8_t found[PATCH_BYTES];
    return target_process_read(target, addr, found, sizeof(found)) == ERR_OK &&
           memcmp(found, bytes, sizeof(found)) == 0;
}

static enum err
check_entries(const struct thread_stop *stop, const struct patch_plan *plan, struct err_info *info)
{
    for (size_t i = 0; i < plan->patches.len; i++) {
        const struct patch *patch = plan->patches.items + i;
        if (!has_bytes(stop->target, patch->jump_addr, patch->old_bytes)) {
            return err_set(info, ERR_CORRUPT,
                           "%s of process %d has changed while cairn looked at it; try again",
                           patch->name, stop->target->pid);
        }
    }
    return ERR_OK;
}

// Whether the overwritten bytes would still be run, now or when a handler returns.
static bool is_inside(const struct thread_stop *stop,
                      const struct application *application,
                      const struct user_regs_struct *regs)
{
    const struct address_range_vec *inside = &application->inside;
    const uint64_t pc = thread_regs_pc(regs);
    const bool is_stuck = stop_scan_is_in(inside->items, inside->len, pc) &&
                          patch_plan_moved_pc(application->plan, pc) == pc;
    return is_stuck || stop_scan_stack(stop->target, regs, inside->items, inside->len);
}

// A thread that is killed meanwhile is not a failure.
static enum err move_threads(struct thread_stop *stop, const struct patch_plan *plan)
{
    for (size_t i = 0; i < stop->threads.len; i++) {
        struct user_regs_struct regs = stop->threads.items[i].regs;
        const uint64_t pc = thread_regs_pc(&regs);
        const uint64_t moved = patch_plan_moved_pc(plan, pc);
        if (moved != pc) {
            thread_regs_go_to(&regs, moved);
            const enum err err = thread_stop_set_regs(stop, i, &regs);
            if (err != ERR_OK && err != ERR_NOT_FOUND) {
                return err;
            }
        }
    }
    return ERR_OK;
}

static enum err
write_jumps(struct thread_stop *stop, const struct patch_plan *plan, struct err_info *info)
{
    enum err err = ERR_OK;
    size_t count = 0;
    for (; err == ERR_OK && count < plan->patches.len; count++) {
        const struct patch *patch = plan->patches.items + count;
        err = thread_stop_write(stop, patch->jump_addr, patch->new_bytes, PATCH_BYTES);
    }
    if (err == ERR_OK) {
        return ERR_OK;
    }
    size_t stuck = 0; // an entry that cannot be written has its old bytes
    for (size_t i = 0; i < count; i++) {
        const struct patch *patch = plan->patches.items + i;
        stuck += thread_stop_write(stop, patch->jump_addr, patch->old_bytes, PATCH_BYTES) != ERR_OK;
    }
    return err_set(info, ERR_IO,
                   "the kernel does not let cairn write to the code of process %d (%zu of %zu "
                   "functions)",
                   stop->target->pid, stuck, plan->patches.len);
}

static enum err apply(struct thread_stop *stop, void *context, struct err_info *info)
{
    const struct application *application = context;
    TRY(check_entries(stop, application->plan, info));
    for (size_t i = 0; i < stop->threads.len; i++) {
        urgent_turns_spare_others(&stop->turns);
        if (is_inside(stop, application, &stop->threads.items[i].regs)) {
            stop->try_again = true;
            return ERR_OK;
        }
    }
    TRY(move_threads(stop, application->plan));
    return write_jumps(stop, application->plan, info);
}

static int compare_ranges(const void *a, const void *b)
{
    const struct address_range *left = a;
    const struct address_range *right = b;
    return order_u64(left->start, right->start);
}

static void release_application(struct application *application)
{
    address_range_vec_release(&application->inside);
}

enum err patching_apply(struct target_process *target,
                        const struct stop_options *options,
                        const struct patch_plan *plan,
                        struct stop_report *report,
                        struct err_info *info)
{
    CLEANUP(release_application) struct application application = {.plan = plan};
    for (size_t i = 0; i < plan->patches.len; i++) {
        const uint64_t jump = plan->patches.items[i].jump_addr;
        TRY(address_range_vec_push(
            &application.inside,
            (struct address_range){.start = jump + 1, .end = jump + PATCH_BYTES}));
    }
    if (application.inside.len != 0) {
        qsort(application.inside.items, application.inside.len, sizeof(struct address_range),
              compare_ranges);
    }
    return thread_stop_run(target, options, apply, &application, report, info);
}

// An entry with other bytes was changed by the target, one without a mapping is gone. But one that
// cannot be read now may still have its jump, so the note must stay.
static bool restore_entry(struct thread_stop *stop, const struct inject_note_patch *patch)
{
    uint8_t found[PATCH_BYTES];
    if (target_process_mapping_at(stop->target, patch->entry) == NULL) {
        return true;
    }
    if (target_process_read(stop->target, patch->entry, found, sizeof(found)) != ERR_OK) {
        return false;
    }
    return memcmp(found, patch->new_bytes, sizeof(found)) != 0 ||
           thread_stop_write(stop, patch->entry, patch->old_bytes, PATCH_BYTES) == ERR_OK;
}

static enum err restore(struct thread_stop *stop, void *context, struct err_info *info)
{
    const struct restoration *restoration = context;
    enum err result = ERR_OK;
    for (size_t i = 0; i < restoration->count; i++) {
        if (!restore_entry(stop, restoration->patches + i)) {
            result = err_set(info, ERR_IO,
                             "cannot restore the code at 0x%" PRIx64 " of process %d; attach to it "
                             "again to try once more",
                             restoration->patches[i].entry, stop->target->pid);
        }
    }
    return result != ERR_OK && target_refusal_is_replaced(stop->target)
               ? target_refusal_explain(stop->target, ERR_NOT_FOUND, info)
               : result;
}

enum err patching_restore(struct target_process *target,
                          const struct stop_options *options,
                          const struct inject_note_patch *patches,
                          size_t count,
                          struct stop_report *report,
                          struct err_info *info)
{
    struct restoration restoration = {.patches = patches, .count = count};
    return thread_stop_run(target, options, restore, &restoration, report, info);
}
