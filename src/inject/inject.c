// SPDX-License-Identifier: MIT
#include "inject/inject.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "host/os/proc_file.h"
#include "inject/agent_image.h"
#include "inject/code/patch_plan.h"
#include "inject/inject_mapping.h"
#include "inject/patching.h"
#include "inject/process/target_reading.h"
#include "inject/process/target_refusal.h"

void inject_close(struct inject *inject)
{
    target_process_close(&inject->target);
    *inject = (struct inject){0};
}

static enum err write_note(struct inject *inject, struct err_info *info)
{
    inject->note.next_slot = inject->calls.next_slot;
    if (target_process_write(&inject->target, remote_calls_note(&inject->calls), &inject->note,
                             sizeof(inject->note)) != ERR_OK) {
        return target_refusal_of_write(&inject->target, info);
    }
    return ERR_OK;
}

// A note is believed only at its own address, behind pages like those of remote_calls.
static bool read_note(struct inject *inject, const struct target_mapping *code)
{
    const struct target_process *target = &inject->target;
    const uint64_t at = code->start + remote_code_bytes() + REMOTE_LIST_BYTES;
    const struct target_mapping *data = target_process_mapping_at(target, at);
    if (code->inode != 0 || code->prot != (PROT_READ | PROT_EXEC) || data == NULL ||
        data->prot != (PROT_READ | PROT_WRITE) || data->inode != 0 ||
        target_process_read(target, at, &inject->note, sizeof(inject->note)) != ERR_OK) {
        return false;
    }
    const struct inject_note *note = &inject->note;
    return note->magic == INJECT_NOTE_MAGIC && note->version == INJECT_NOTE_VERSION &&
           note->page == code->start && note->near_count <= INJECT_NEARS_MAX &&
           note->patch_count <= INJECT_PATCHES_MAX;
}

static void find_note(struct inject *inject)
{
    for (size_t i = 0; i < inject->target.mappings.len; i++) {
        const struct target_mapping *code = inject->target.mappings.items + i;
        if (code->end - code->start == remote_code_bytes() && read_note(inject, code)) {
            inject->calls.page = code->start;
            inject->calls.next_slot = inject->note.next_slot;
            return;
        }
    }
    inject->note = (struct inject_note){.magic = INJECT_NOTE_MAGIC, .version = INJECT_NOTE_VERSION};
}

// Whether filters can be suspended is seen by doing it, on one thread that does nothing.
static enum err do_nothing(struct thread_stop *stop, void *context, struct err_info *info)
{
    (void)stop;
    (void)context;
    (void)info;
    return ERR_OK;
}

static enum err lift_seccomp(struct inject *inject, struct err_info *info)
{
    struct stop_options options = inject->options.stop;
    options.only_tid = inject->target.live_tid;
    options.lift_seccomp = true;
    const enum err err = thread_stop_run(&inject->target, &options, do_nothing, NULL, NULL, info);
    if (err == ERR_PERMISSION || err == ERR_IO) {
        return err_set(info, ERR_PERMISSION,
                       "process %d has a seccomp filter, which may kill it for a system call of "
                       "cairn's; run cairn as root, which may suspend the filter for a moment",
                       inject->target.pid);
    }
    inject->calls.stop.lift_seccomp = true;
    return err;
}

static enum err restore_noted(struct inject *inject, struct err_info *info)
{
    struct inject_note *note = &inject->note;
    if (note->patch_count == 0) {
        return ERR_OK;
    }
    TRY(target_process_refresh(&inject->target, info));
    TRY(patching_restore(&inject->target, &inject->options.stop, note->patches, note->patch_count,
                         &inject->stop, info));
    note->patch_count = 0;
    note->owner_pid = 0;
    return write_note(inject, info);
}

static enum err keep_noted(struct inject *inject, struct err_info *info)
{
    if (inject->note.patch_count == 0 || inject->note.owner_pid != getpid()) {
        return err_set(info, ERR_NOT_FOUND, "process %d has no functions that cairn has hooked",
                       inject->target.pid);
    }
    inject->image_addr = inject->note.image_addr;
    return ERR_OK;
}

static enum err open_target(struct inject *inject, int pid, struct err_info *info)
{
    TRY(target_process_open(&inject->target, pid, inject->options.kernel, info));
    inject->calls = (struct remote_calls){.target = &inject->target, .stop = inject->options.stop};
    find_note(inject);
    const struct inject_note *note = &inject->note;
    if (note->owner_pid != 0 && note->owner_pid != getpid() &&
        proc_file_start(note->owner_pid) == note->owner_start && note->owner_start != 0) {
        return err_set(info, ERR_PERMISSION,
                       "process %d is already recorded by cairn (process %d); end that first", pid,
                       note->owner_pid);
    }
    return inject->target.has_seccomp ? lift_seccomp(inject, info) : ERR_OK;
}

enum err inject_open(struct inject *inject,
                     int pid,
                     const struct inject_options *options,
                     struct err_info *info)
{
    *inject = (struct inject){0};
    inject->options = options != NULL ? *options : (struct inject_options){0};
    if (inject->options.kernel == NULL) {
        inject->options.kernel = &kernel_calls_real;
    }
    enum err err = open_target(inject, pid, info);
    if (err == ERR_OK) {
        err =
            inject->options.keeps_patches ? keep_noted(inject, info) : restore_noted(inject, info);
    }
    if (err != ERR_OK) {
        inject_close(inject);
    }
    return err;
}

enum err inject_map(struct inject *inject,
                    struct bytes image,
                    struct inject_near *nears,
                    size_t count,
                    struct err_info *info)
{
    CLEANUP(agent_image_release) struct agent_image laid_out = {0};
    TRY(agent_image_init(&laid_out, image, page_bytes(), info));
    TRY(inject_mapping_image(inject, &laid_out, nears, count, info));
    TRY(inject_mapping_nears(inject, nears, count, info));
    inject->note.page = inject->calls.page;
    TRY(write_note(inject, info));
    return target_process_refresh(&inject->target, info);
}

uint64_t inject_symbol(const struct inject *inject, struct bytes image, const char *name)
{
    const uint64_t offset = agent_image_symbol(image, name);
    return offset != 0 && inject->image_addr != 0 ? inject->image_addr + offset : 0;
}

// A block that was in use has its bytes already, and threads may be in it.
static enum err
write_block(struct inject *inject, const struct near_block *block, struct err_info *info)
{
    struct inject_note_near *near = inject_mapping_near_at(&inject->note, block->addr);
    if (near == NULL || block->len > near->bytes) {
        return err_set(info, ERR_INVALID, "the plan has a block that inject_map did not map");
    }
    CLEANUP(strbuf_release) struct strbuf found = {0};
    if (!strbuf_reserve(&found, block->len)) {
        return ERR_NO_MEMORY;
    }
    const enum err err = target_process_read(&inject->target, block->addr, found.data, block->len);
    if (err != ERR_OK) {
        return target_refusal_explain(&inject->target, err, info);
    }
    if (memcmp(found.data, block->bytes, block->len) == 0) {
        near->is_used = 1;
        return ERR_OK;
    }
    if (near->is_used != 0) {
        return err_set(info, ERR_INVALID, "process %d has other trampolines of cairn at 0x%" PRIx64,
                       inject->target.pid, block->addr);
    }
    TRY(inject_mapping_write(inject, block->addr, block->bytes, block->len, info));
    near->is_used = 1;
    return ERR_OK;
}

enum err inject_patch(struct inject *inject, const struct patch_plan *plan, struct err_info *info)
{
    struct inject_note *note = &inject->note;
    const uint32_t earlier = note->patch_count;
    const uint64_t end = plan->first_index + plan->patches.len;
    if (end > INJECT_PATCHES_MAX) {
        return err_set(info, ERR_LIMIT,
                       "%" PRIu64 " allocation functions are too many, the limit is %d", end,
                       (int)INJECT_PATCHES_MAX);
    }
    for (size_t i = 0; i < plan->blocks.len; i++) {
        TRY(write_block(inject, plan->blocks.items + i, info));
    }
    for (size_t i = 0; i < plan->patches.len; i++) {
        const struct patch *patch = plan->patches.items + i;
        struct inject_note_patch *noted = note->patches + plan->first_index + i;
        noted->entry = patch->jump_addr;
        memcpy(noted->old_bytes, patch->old_bytes, PATCH_BYTES);
        memcpy(noted->new_bytes, patch->new_bytes, PATCH_BYTES);
    }
    note->patch_count = (uint32_t)max_u64(earlier, end);
    note->owner_pid = getpid();
    note->owner_start = proc_file_start(getpid());
    TRY(write_note(inject, info)); // before the first jump, so that the next attach finds it
    const enum err err =
        patching_apply(&inject->target, &inject->options.stop, plan, &inject->stop, info);
    if (err != ERR_OK) {
        note->patch_count = earlier; // the one in the target names entries with their old bytes
    }
    return err;
}

enum err inject_unpatch(struct inject *inject, struct err_info *info)
{
    const enum err err = restore_noted(inject, info);
    return err == ERR_NOT_FOUND ? ERR_OK : err; // the target has ended
}
