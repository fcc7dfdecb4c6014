// SPDX-License-Identifier: MIT
#include "inject/code/patch_plan.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"

enum {
    FUNCTION_BYTES_MAX = 1u << 20, // longer ones are no entries of allocators
    UNSIZED_BYTES = 1024u,         // read of a function whose size is unknown
    PADDING_BYTES = 16u,           // read behind a function
};

void patch_plan_release(struct patch_plan *plan)
{
    for (size_t i = 0; i < plan->blocks.len; i++) {
        free(plan->blocks.items[i].bytes);
    }
    near_block_vec_release(&plan->blocks);
    patch_vec_release(&plan->patches);
    patch_refusal_vec_release(&plan->refusals);
}

// Return whether the jump at `addr` would overlap that of another patch.
static bool overlaps(const struct patch_plan *plan, uint64_t addr)
{
    for (size_t i = 0; i < plan->patches.len; i++) {
        const uint64_t other = plan->patches.items[i].jump_addr;
        if (addr < other + PATCH_BYTES && other < addr + PATCH_BYTES) {
            return true;
        }
    }
    return false;
}

// Return NULL if the patch was planned, else the reason why it cannot be.
static const char *plan_patch(const struct patch_plan *plan,
                              const struct patch_target *target,
                              const struct code_reader *reader,
                              uint8_t *code,
                              struct patch *patch,
                              uint8_t *slot)
{
    static const char within[] = "begins within another patched function";
    if (overlaps(plan, target->addr)) {
        return within;
    }
    const uint64_t wanted = target->size_bytes == 0 ? UNSIZED_BYTES : target->size_bytes;
    if (wanted > FUNCTION_BYTES_MAX) {
        return "is too long to be checked";
    }
    const struct bytes readable = {
        code, reader->read(reader->context, target->addr, code, wanted + PADDING_BYTES)};
    if (readable.len < target->size_bytes) {
        return "cannot be read";
    }
    struct relocated moved;
    enum relocate_refusal refusal = relocate_prologue(readable, target->size_bytes, target->addr,
                                                      patch->trampoline_addr, &moved);
    if (refusal == RELOCATE_OK) {
        patch->jump_addr = target->addr + moved.kept_len;
        refusal = relocate_write_jump(patch->jump_addr, patch->stub_addr, patch->new_bytes);
    }
    if (refusal != RELOCATE_OK) {
        return relocate_refusal_text(refusal);
    }
    if (overlaps(plan, patch->jump_addr)) {
        return within;
    }
    memcpy(patch->old_bytes, code + moved.kept_len, PATCH_BYTES);
    memcpy(patch->moves, moved.moves, sizeof(patch->moves));
    patch->move_count = moved.move_count;
    const uint64_t abi_hook_addr = plan->abi_hook_addrs[target->hook];
    patch->has_abi_hook = target->changes_all && abi_hook_addr != 0;
    if (patch->has_abi_hook) {
        relocate_write_abi_stub(patch->stub_addr, abi_hook_addr, slot);
    } else {
        relocate_write_stub(&moved, patch->index, plan->hook_addrs[target->hook], slot);
    }
    memcpy(slot + STUB_BYTES, moved.code, moved.code_len);
    return NULL;
}

// Plan one function, or set the reason why it cannot be patched. Its slot is used only in the first
// case.
static enum err add_target(struct patch_plan *plan,
                           const struct patch_target *target,
                           const struct code_reader *reader,
                           struct near_block *block,
                           uint8_t *code,
                           const char **out_reason)
{
    const uint64_t slot_addr = block->addr + block->len;
    struct patch patch = {
        .entry_addr = target->addr,
        .index = plan->first_index + (uint32_t)plan->patches.len,
        .hook = target->hook,
        .name = target->name,
        .stub_addr = slot_addr,
        .trampoline_addr = slot_addr + STUB_BYTES,
    };
    const char *reason = plan_patch(plan, target, reader, code, &patch, block->bytes + block->len);
    if (reason != NULL) {
        *out_reason = reason;
        return ERR_OK;
    }
    block->len += PATCH_SLOT_BYTES;
    return patch_vec_push(&plan->patches, patch);
}

// Whether the hook of the called function records what the calling one does to the heap.
static bool records_as_well(enum agent_hook called, enum agent_hook calling)
{
    const enum agent_effect inner = agent_hook_shape(called).effect;
    const enum agent_effect outer = agent_hook_shape(calling).effect;
    return inner == outer || (inner == AGENT_ALLOCATES &&
                              (outer == AGENT_ALLOCATES_OR_THROWS || outer == AGENT_ALLOCATES_AT ||
                               outer == AGENT_COPIES_TEXT));
}

// Keep the reason, unless the function calls another one that is to be patched and does the same.
static enum err refuse(struct patch_plan *plan,
                       const struct patch_target *targets,
                       size_t count,
                       size_t index,
                       const char *reason,
                       const struct code_reader *reader,
                       uint8_t *code)
{
    const struct patch_target *target = targets + index;
    const uint64_t wanted = min_u64(target->size_bytes, FUNCTION_BYTES_MAX);
    const struct bytes body = {code, reader->read(reader->context, target->addr, code, wanted)};
    for (size_t i = 0; i < count; i++) {
        if (targets[i].addr != target->addr && records_as_well(targets[i].hook, target->hook) &&
            relocate_leads_to(body, target->addr, targets[i].addr)) {
            return ERR_OK;
        }
    }
    return patch_refusal_vec_push(&plan->refusals,
                                  (struct patch_refusal){target->addr, target->name, reason});
}

// Return the address that acts as the unpatched function at `addr`.
static uint64_t original_addr(const struct patch_plan *plan, uint64_t addr)
{
    for (size_t i = 0; i < plan->patches.len; i++) {
        if (plan->patches.items[i].entry_addr == addr) {
            return plan->patches.items[i].trampoline_addr;
        }
    }
    return addr;
}

static bool lacks_nothrow(const struct patch_target *target, size_t count)
{
    return agent_hook_shape(target->hook).effect == AGENT_ALLOCATES_OR_THROWS &&
           (target->nothrow < 0 || (size_t)target->nothrow >= count);
}

// Give the throwing operators among the patches from `first` on their nothrow forms.
static void add_nothrow(struct patch_plan *plan,
                        const struct patch_target *targets,
                        size_t count,
                        size_t first,
                        const struct near_block *block)
{
    for (size_t i = 0, at = first; i < count && at < plan->patches.len; i++) {
        struct patch *patch = plan->patches.items + at;
        if (patch->entry_addr != targets[i].addr) {
            continue; // it was refused
        }
        at++;
        if (agent_hook_shape(targets[i].hook).effect != AGENT_ALLOCATES_OR_THROWS) {
            continue;
        }
        patch->nothrow_addr = original_addr(plan, targets[targets[i].nothrow].addr);
        if (patch->has_abi_hook) {
            relocate_write_abi_nothrow(patch->nothrow_addr,
                                       block->bytes + (patch->stub_addr - block->addr));
        }
    }
}

enum err patch_plan_add(struct patch_plan *plan,
                        const struct patch_target *targets,
                        size_t count,
                        uint64_t block_addr,
                        const struct code_reader *reader)
{
    struct near_block block = {.addr = block_addr};
    char *code CLEANUP(text_freep) = malloc(FUNCTION_BYTES_MAX + PADDING_BYTES);
    TRY(near_block_vec_reserve(&plan->blocks, 1));
    block.bytes = calloc(count + 1, PATCH_SLOT_BYTES);
    if (code == NULL || block.bytes == NULL) {
        free(block.bytes);
        return ERR_NO_MEMORY;
    }
    const size_t first = plan->patches.len;
    enum err err = ERR_OK;
    for (size_t i = 0; err == ERR_OK && i < count; i++) {
        if (plan->hook_addrs[targets[i].hook] == 0) {
            continue;
        }
        const char *reason = NULL;
        if (lacks_nothrow(targets + i, count)) {
            reason = "has no form that returns instead of throwing";
        } else {
            err = add_target(plan, targets + i, reader, &block, (uint8_t *)code, &reason);
        }
        if (err == ERR_OK && reason != NULL) {
            err = refuse(plan, targets, count, i, reason, reader, (uint8_t *)code);
        }
    }
    plan->blocks.items[plan->blocks.len++] = block; // reserved above
    if (err == ERR_OK) {
        add_nothrow(plan, targets, count, first, &block);
    }
    return err;
}

uint64_t patch_plan_moved_pc(const struct patch_plan *plan, uint64_t pc)
{
    for (size_t i = 0; i < plan->patches.len; i++) {
        const struct patch *patch = plan->patches.items + i;
        for (uint8_t at = 0; at < patch->move_count; at++) {
            if (pc == patch->entry_addr + patch->moves[at].from) {
                return patch->trampoline_addr + patch->moves[at].to;
            }
        }
    }
    return pc;
}
