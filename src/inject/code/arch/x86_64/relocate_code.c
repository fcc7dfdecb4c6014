// SPDX-License-Identifier: MIT
// relocate_code: relocate.h for x86-64, with Zydis as the decoder.
//
// A branch or call is written again with a displacement of 32 bits, whatever it had; of any other
// instruction only the displacement from %rip changes. Moved code grows by at most 4 bytes a
// branch, and at most two branches begin in the first bytes before a last instruction of up to 15
// bytes: with the jump back 32 bytes, which are TRAMPOLINE_BYTES.
// Context: H; any thread; no failure but the refusals.
#include "inject/code/relocate.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <string.h>

enum {
    OPCODE_JMP = 0xe9,
    OPCODE_CALL = 0xe8,
    OPCODE_JCC = 0x80,      // after 0x0f; the low four bits are the condition
    PADDING_ALIGNMENT = 8u, // linkers and compilers pad to 16; of less it may be the next function
    NOTHROW_AT = STUB_BYTES - 8,
};

// A decoded instruction, as far as it concerns us.
struct code_step {
    ZydisDecodedInstruction decoded;
    uint32_t offset; // from the entry
    uint32_t end;    // from the entry
    bool is_branch;  // with a target relative to its end
    bool is_call;    // of any kind
    bool is_last;    // what follows it is not run
    uint64_t target; // of a branch: from the entry; may be before it (wraps)
};

static bool is_relative_branch(const ZydisDecodedInstruction *decoded)
{
    return decoded->raw.imm[0].size != 0 && decoded->raw.imm[0].is_relative;
}

static bool ends_path(const ZydisDecodedInstruction *decoded)
{
    return decoded->mnemonic == ZYDIS_MNEMONIC_JMP || decoded->mnemonic == ZYDIS_MNEMONIC_UD2 ||
           decoded->meta.category == ZYDIS_CATEGORY_RET;
}

// Decode the instruction at `offset`; false if there is none.
static bool
decode(const ZydisDecoder *decoder, struct bytes code, uint32_t offset, struct code_step *step)
{
    if (offset >= code.len ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, code.data + offset,
                                                    code.len - offset, &step->decoded))) {
        return false;
    }
    const ZydisDecodedInstruction *decoded = &step->decoded;
    step->offset = offset;
    step->end = offset + decoded->length;
    step->is_branch = is_relative_branch(decoded);
    step->is_call = decoded->meta.category == ZYDIS_CATEGORY_CALL;
    step->is_last = ends_path(decoded);
    step->target = step->is_branch ? step->end + (uint64_t)decoded->raw.imm[0].value.s : 0;
    return true;
}

// Return whether a branch makes it unsafe to overwrite the first bytes. A jump back to the entry
// would meet the hook again on each turn of a loop; that counts only where the function is known to
// hold the branch.
static bool leads_inside(const struct code_step *step, bool is_in_function)
{
    if (!step->is_branch) {
        return false;
    }
    return (step->target > 0 && step->target < PATCH_BYTES) ||
           (step->target == 0 && is_in_function && !step->is_call);
}

// Check the branches of the rest of the function. Data between its instructions is skipped byte by
// byte until the decoder is in step again.
static bool rest_leads_inside(const ZydisDecoder *decoder,
                              struct bytes code,
                              uint32_t from,
                              bool is_in_function)
{
    struct code_step step;
    for (uint32_t at = from; at < code.len; at = step.end) {
        if (!decode(decoder, code, at, &step)) {
            step.end = at + 1;
        } else if (leads_inside(&step, is_in_function)) {
            return true;
        }
    }
    return false;
}

// Return whether only padding is between the end of a short function and the next aligned address
// behind the patch.
static bool
padding_follows(const ZydisDecoder *decoder, struct bytes code, uint64_t addr, uint32_t at)
{
    const uint64_t behind = addr + PATCH_BYTES + PADDING_ALIGNMENT - 1;
    const uint64_t wanted = behind - behind % PADDING_ALIGNMENT - addr;
    struct code_step step;
    for (; at < wanted; at = step.end) {
        if (!decode(decoder, code, at, &step)) {
            return false;
        }
        const ZydisMnemonic mnemonic = step.decoded.mnemonic;
        if (mnemonic != ZYDIS_MNEMONIC_NOP && mnemonic != ZYDIS_MNEMONIC_INT3) {
            return false;
        }
    }
    return true;
}

static bool fits_32(int64_t displacement)
{
    return displacement == (int32_t)displacement;
}

// Append opcode and displacement of a branch to `target` (an address).
static enum relocate_refusal append_branch(struct relocated *out,
                                           const uint8_t *opcode,
                                           uint8_t opcode_len,
                                           uint64_t trampoline_addr,
                                           uint64_t target)
{
    const uint8_t len = opcode_len + 4;
    const int64_t displacement = (int64_t)(target - (trampoline_addr + out->code_len + len));
    if (!fits_32(displacement)) {
        return RELOCATE_OUT_OF_REACH;
    }
    memcpy(out->code + out->code_len, opcode, opcode_len);
    put_u32(out->code + out->code_len + opcode_len, (uint32_t)displacement);
    out->code_len += len;
    return RELOCATE_OK;
}

static enum relocate_refusal move_branch(const struct code_step *step,
                                         uint64_t entry_addr,
                                         uint64_t trampoline_addr,
                                         struct relocated *out)
{
    const ZydisDecodedInstruction *decoded = &step->decoded;
    const bool is_short = decoded->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
    const bool is_wide = decoded->raw.imm[0].size != 16; // 0x66 truncates the target
    uint8_t opcode[2] = {0x0f, OPCODE_JCC | (decoded->opcode & 0x0f)};
    uint8_t opcode_len = 2;
    if (decoded->mnemonic == ZYDIS_MNEMONIC_JMP || decoded->mnemonic == ZYDIS_MNEMONIC_CALL) {
        opcode[0] = decoded->mnemonic == ZYDIS_MNEMONIC_JMP ? OPCODE_JMP : OPCODE_CALL;
        opcode_len = 1;
    } else if (!(is_short && decoded->opcode >> 4 == 0x7) &&
               !(decoded->opcode_map == ZYDIS_OPCODE_MAP_0F && decoded->opcode >> 4 == 0x8)) {
        return RELOCATE_UNMOVABLE;
    }
    return is_wide
               ? append_branch(out, opcode, opcode_len, trampoline_addr, entry_addr + step->target)
               : RELOCATE_UNMOVABLE;
}

// Append an instruction that is not a branch.
static enum relocate_refusal move_other(const struct code_step *step,
                                        const uint8_t *bytes,
                                        uint64_t entry_addr,
                                        uint64_t trampoline_addr,
                                        struct relocated *out)
{
    const ZydisDecodedInstruction *decoded = &step->decoded;
    uint8_t *to = out->code + out->code_len;
    memcpy(to, bytes, decoded->length);
    if ((decoded->attributes & ZYDIS_ATTRIB_IS_RELATIVE) != 0) {
        const uint64_t moved_by = trampoline_addr + out->code_len - (entry_addr + step->offset);
        const int64_t displacement = decoded->raw.disp.value - (int64_t)moved_by;
        if (decoded->raw.disp.size != 32 || decoded->address_width != 64) {
            return RELOCATE_UNMOVABLE;
        }
        if (!fits_32(displacement)) {
            return RELOCATE_OUT_OF_REACH;
        }
        put_u32(to + decoded->raw.disp.offset, (uint32_t)displacement);
    }
    out->code_len += decoded->length;
    return RELOCATE_OK;
}

// Check one of the first instructions and append it.
static enum relocate_refusal move_step(const struct code_step *step,
                                       struct bytes code,
                                       uint64_t entry_addr,
                                       uint64_t trampoline_addr,
                                       struct relocated *out)
{
    if (step->decoded.mnemonic == ZYDIS_MNEMONIC_INT3) {
        return RELOCATE_BREAKPOINT;
    }
    if (step->is_call && step->end < PATCH_BYTES) {
        return RELOCATE_CALL_RETURNS_INTO;
    }
    if (leads_inside(step, true)) {
        return RELOCATE_BRANCH_INTO;
    }
    if (step->offset != 0) {
        out->moves[out->move_count++] =
            (struct relocate_move){.from = (uint8_t)step->offset, .to = out->code_len};
    }
    return step->is_branch
               ? move_branch(step, entry_addr, trampoline_addr, out)
               : move_other(step, code.data + step->offset, entry_addr, trampoline_addr, out);
}

enum relocate_refusal relocate_prologue(struct bytes readable,
                                        uint64_t size_bytes,
                                        uint64_t entry_addr,
                                        uint64_t trampoline_addr,
                                        struct relocated *out)
{
    ZydisDecoder decoder;
    (void)ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
                           ZYDIS_STACK_WIDTH_64); // cannot fail
    if (size_bytes > readable.len) {
        return RELOCATE_UNDECODABLE;
    }
    const bool is_sized = size_bytes != 0;
    const struct bytes function = {readable.data, is_sized ? size_bytes : readable.len};
    struct relocated moved = {0};
    struct code_step step = {0};
    while (step.end < PATCH_BYTES && !step.is_last) {
        if (is_sized && step.end == function.len) {
            return RELOCATE_TOO_SHORT; // it runs on into whatever follows
        }
        if (!decode(&decoder, function, step.end, &step)) {
            return RELOCATE_UNDECODABLE;
        }
        const enum relocate_refusal refusal =
            move_step(&step, function, entry_addr, trampoline_addr, &moved);
        if (refusal != RELOCATE_OK) {
            return refusal;
        }
    }
    moved.old_len = (uint8_t)step.end;
    if (step.end < PATCH_BYTES && ((is_sized && step.end < function.len) ||
                                   !padding_follows(&decoder, readable, entry_addr, step.end))) {
        return RELOCATE_TOO_SHORT;
    }
    if (rest_leads_inside(&decoder, function, step.end, is_sized)) {
        return RELOCATE_BRANCH_INTO;
    }
    if (!step.is_last) {
        const uint8_t jmp = OPCODE_JMP;
        const enum relocate_refusal refusal =
            append_branch(&moved, &jmp, 1, trampoline_addr, entry_addr + step.end);
        if (refusal != RELOCATE_OK) {
            return refusal;
        }
    }
    *out = moved;
    return RELOCATE_OK;
}

bool relocate_leads_to(struct bytes code, uint64_t addr, uint64_t to)
{
    enum {
        CALL = 0xe8,
        JUMP = 0xe9,
        BRANCH_BYTES = 5,
    };
    for (size_t i = 0; i + BRANCH_BYTES <= code.len; i++) {
        if ((code.data[i] == CALL || code.data[i] == JUMP) &&
            addr + i + BRANCH_BYTES + (uint64_t)(int32_t)get_u32(code.data + i + 1) == to) {
            return true;
        }
    }
    return false;
}

enum relocate_refusal
relocate_write_jump(uint64_t entry_addr, uint64_t stub_addr, uint8_t out[PATCH_BYTES])
{
    const int64_t displacement = (int64_t)(stub_addr - (entry_addr + PATCH_BYTES));
    if (!fits_32(displacement)) {
        return RELOCATE_OUT_OF_REACH;
    }
    out[0] = OPCODE_JMP;
    put_u32(out + 1, (uint32_t)displacement);
    return RELOCATE_OK;
}

void relocate_write_stub(const struct relocated *moved,
                         uint32_t index,
                         uint64_t hook_addr,
                         uint8_t out[STUB_BYTES])
{
    (void)moved;                                                 // nothing is to be undone
    static const uint8_t jmp_next[6] = {0xff, 0x25, 5, 0, 0, 0}; // jmp *5(%rip)
    static const uint8_t trap[5] = {0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
    out[0] = 0x68; // push imm32
    put_u32(out + 1, index);
    memcpy(out + 5, jmp_next, sizeof(jmp_next));
    memcpy(out + 11, trap, sizeof(trap));
    put_u64(out + 16, hook_addr); // aligned, so that a write of it is one for every thread
    put_u64(out + NOTHROW_AT, 0);
}

// A direct jump where the hook is in reach: an indirect one takes a nanosecond more.
void relocate_write_abi_stub(uint64_t stub_addr, uint64_t hook_addr, uint8_t out[STUB_BYTES])
{
    static const uint8_t code[16] = {
        0x4c, 0x8d, 0x05, STUB_BYTES - 7,
        0,    0,    0, // lea trampoline(%rip), %r8
        0xff, 0x25, 3,    0,
        0,    0, // jmp *3(%rip)
        0xcc, 0xcc, 0xcc,
    };
    const int64_t displacement = (int64_t)(hook_addr - (stub_addr + 12));
    memcpy(out, code, sizeof(code));
    if (fits_32(displacement)) {
        out[7] = OPCODE_JMP;
        put_u32(out + 8, (uint32_t)displacement);
        out[12] = 0xcc;
    }
    put_u64(out + 16, hook_addr); // aligned, as above
    put_u64(out + NOTHROW_AT, 0);
}

void relocate_write_abi_nothrow(uint64_t nothrow_addr, uint8_t out[STUB_BYTES])
{
    put_u64(out + NOTHROW_AT, nothrow_addr);
}
