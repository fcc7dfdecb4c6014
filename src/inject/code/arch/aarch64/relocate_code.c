// SPDX-License-Identifier: MIT
// relocate_code: relocate.h for AArch64.
//
// One instruction moves. Nothing can reach its middle; only a loop back to the entry is refused.
// Instructions that depend on their address are these classes (Arm ARM, C4.1), rewritten with
// registers that a function may clobber at its entry (x16, or the one that it sets):
//
//   b               b                       adr, adrp     ldr xd, literal; b back
//   bl              ldr x30, literal; b     ldr (literal) ldr xn, literal; ldr xt, [xn]; b back
//   b.cond, cbz, tbz, and their opposites   the same over 8 bytes; b back; b target
//
// Every jump is a `b`, because an indirect one could only land on a `bti` in guarded pages. So the
// trampoline is within 128 MB of entry and target. Literals are at the trampoline's end.
//
// A landing pad at the entry is one of these; only pac*sp change anything, and aut*sp undo that:
//
//   bti c, bti jc     paciasp, pacibsp
//
// Context: H; any thread; no failure but the refusals.
#include <stdbool.h>

#include "base/compiler.h"
#include "inject/code/relocate.h"

enum {
    WORD = 4,
    LITERAL_AT = TRAMPOLINE_BYTES - 8,
    X16 = 16,
    X30 = 30,
    XZR = 31,
};

#define B       0x14000000u
#define LDR_LIT 0x58000000u // of 64 bits
#define NOP     0xd503201fu
#define BTI_C   0xd503245fu
#define BTI_JC  0xd50324dfu
#define PACIASP 0xd503233fu
#define PACIBSP 0xd503237fu
#define AUT_BIT 0x80u // of the instruction that undoes one of these

// A trampoline under construction.
struct code_writer {
    struct relocated out;
    uint64_t addr;   // of its first byte
    bool has_failed; // a jump does not reach
};

struct code_class {
    uint32_t mask;
    uint32_t bits;
    void (*move)(struct code_writer *writer, uint32_t word, uint64_t pc);
    uint8_t offset_shift; // of the offset in words, if it is a branch
    uint8_t offset_bits;  // 0: not a branch
    bool is_call;
};

static int64_t sign_extended(uint32_t value, unsigned bits)
{
    return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

static void write_word(struct code_writer *writer, uint32_t word)
{
    put_u32(writer->out.code + writer->out.code_len, word);
    writer->out.code_len += WORD;
}

static bool jump_word(uint64_t from, uint64_t to, uint32_t *out)
{
    const int64_t words = (int64_t)(to - from) / WORD;
    *out = B | ((uint32_t)words & 0x03ffffffu);
    return words >= -0x2000000 && words < 0x2000000;
}

static void write_jump(struct code_writer *writer, uint64_t target)
{
    uint32_t word;
    writer->has_failed |= !jump_word(writer->addr + writer->out.code_len, target, &word);
    write_word(writer, word);
}

// Load a constant. There is one at most.
static void write_load(struct code_writer *writer, uint32_t reg, uint64_t value)
{
    put_u64(writer->out.code + LITERAL_AT, value);
    write_word(writer, LDR_LIT | (LITERAL_AT - writer->out.code_len) / WORD << 5 | reg);
}

static uint64_t branch_target(const struct code_class *class, uint32_t word, uint64_t pc)
{
    const uint32_t offset = word >> class->offset_shift & ((1u << class->offset_bits) - 1);
    return pc + (uint64_t)(sign_extended(offset, class->offset_bits) * WORD);
}

static void move_b(struct code_writer *writer, uint32_t word, uint64_t pc)
{
    write_jump(writer, pc + (uint64_t)(sign_extended(word & 0x03ffffff, 26) * WORD));
}

static void move_bl(struct code_writer *writer, uint32_t word, uint64_t pc)
{
    write_load(writer, X30, pc + WORD); // the callee returns past the patch
    move_b(writer, word, pc);
}

// `branch` leads over the jump back, to the jump to its target.
static void write_over(struct code_writer *writer, uint32_t branch, uint64_t target, uint64_t pc)
{
    write_word(writer, branch);
    write_jump(writer, pc + WORD);
    write_jump(writer, target);
}

// b.cond, cbz and cbnz have 19 bits of offset in words, tbz and tbnz 14, all from bit 5.
#define OVER_ONE_WORD (2u << 5)

static void move_19(struct code_writer *writer, uint32_t word, uint64_t pc)
{
    const uint64_t target = pc + (uint64_t)(sign_extended(word >> 5 & 0x7ffff, 19) * WORD);
    write_over(writer, (word & ~(0x7ffffu << 5)) | OVER_ONE_WORD, target, pc);
}

static void move_14(struct code_writer *writer, uint32_t word, uint64_t pc)
{
    const uint64_t target = pc + (uint64_t)(sign_extended(word >> 5 & 0x3fff, 14) * WORD);
    write_over(writer, (word & ~(0x3fffu << 5)) | OVER_ONE_WORD, target, pc);
}

static void move_adr(struct code_writer *writer, uint32_t word, uint64_t pc)
{
    const int64_t offset = sign_extended((word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3), 21);
    const bool is_page = word >> 31 != 0;
    write_load(writer, word & 0x1f,
               is_page ? (pc & ~(uint64_t)0xfff) + (uint64_t)(offset * 4096)
                       : pc + (uint64_t)offset);
    write_jump(writer, pc + WORD);
}

// By opc and V: loads from [xn]. What is prefetched does not matter.
static void move_ldr(struct code_writer *writer, uint32_t word, uint64_t pc)
{
    static const uint32_t loads[8] = {
        0xb9400000, 0xf9400000, 0xb9800000, 0, // w, x, sw, prfm
        0xbd400000, 0xfd400000, 0x3dc00000, 0, // s, d, q
    };
    const uint32_t load = loads[word >> 30 | (word >> 26 & 1) << 2];
    const uint32_t reg = word & 0x1f;
    const bool is_vector = (word >> 26 & 1) != 0;
    const uint32_t base = is_vector || reg == XZR ? X16 : reg;
    if (load != 0) {
        write_load(writer, base, pc + (uint64_t)(sign_extended(word >> 5 & 0x7ffff, 19) * WORD));
        write_word(writer, load | base << 5 | reg);
    }
    write_jump(writer, pc + WORD);
}

static const struct code_class classes[] = {
    {0xfc000000, 0x14000000, move_b, 0, 26, false},  {0xfc000000, 0x94000000, move_bl, 0, 26, true},
    {0xff000000, 0x54000000, move_19, 5, 19, false}, // b.cond, bc.cond
    {0x7e000000, 0x34000000, move_19, 5, 19, false}, // cbz, cbnz
    {0x7e000000, 0x36000000, move_14, 5, 14, false}, // tbz, tbnz
    {0x1f000000, 0x10000000, move_adr, 0, 0, false}, // adr, adrp
    {0x3b000000, 0x18000000, move_ldr, 0, 0, false}, // ldr, ldrsw, prfm (literal)
};

// Return the class of an instruction that depends on its address, NULL for others.
static const struct code_class *class_of(uint32_t word)
{
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        if ((word & classes[i].mask) == classes[i].bits) {
            return classes + i;
        }
    }
    return NULL;
}

// Whether some jump of the function leads to the entry, or to the instruction behind its pad.
static bool loops_to_entry(struct bytes readable, uint64_t size_bytes, uint64_t kept)
{
    for (uint64_t at = 0; at + WORD <= size_bytes; at += WORD) {
        const uint32_t word = get_u32(readable.data + at);
        const struct code_class *class = class_of(word);
        if (class != NULL && class->offset_bits != 0 && !class->is_call &&
            branch_target(class, word, at) <= kept) {
            return true;
        }
    }
    return false;
}

enum relocate_refusal relocate_prologue(struct bytes readable,
                                        uint64_t size_bytes,
                                        uint64_t entry_addr,
                                        uint64_t trampoline_addr,
                                        struct relocated *out)
{
    if (readable.len < WORD || size_bytes > readable.len || entry_addr % WORD != 0) {
        return RELOCATE_UNDECODABLE;
    }
    const uint32_t first = get_u32(readable.data);
    const bool is_signing = first == PACIASP || first == PACIBSP;
    const uint64_t kept = is_signing || first == BTI_C || first == BTI_JC ? WORD : 0;
    if (readable.len < kept + WORD || (size_bytes != 0 && size_bytes < kept + WORD)) {
        return RELOCATE_TOO_SHORT;
    }
    const uint32_t word = get_u32(readable.data + kept);
    const struct code_class *class = class_of(word);
    if (word >> 16 == 0) { // udf
        return RELOCATE_UNDECODABLE;
    }
    if ((word & 0xffe0001fu) == 0xd4200000u) { // brk
        return RELOCATE_BREAKPOINT;
    }
    if (loops_to_entry(readable, size_bytes, kept)) {
        return RELOCATE_BRANCH_INTO;
    }
    struct code_writer writer = {
        .addr = trampoline_addr,
        .out = {.old_len = WORD, .kept_len = (uint8_t)kept, .is_signing = is_signing}};
    if (is_signing) {
        write_word(&writer, first);
    }
    if (class != NULL) {
        class->move(&writer, word, entry_addr + kept);
    } else {
        write_word(&writer, word);
        write_jump(&writer, entry_addr + kept + WORD);
    }
    if (writer.has_failed) {
        return RELOCATE_OUT_OF_REACH;
    }
    writer.out.code_len = TRAMPOLINE_BYTES; // with the literal
    *out = writer.out;
    return RELOCATE_OK;
}

bool relocate_leads_to(struct bytes code, uint64_t addr, uint64_t to)
{
    for (size_t i = 0; i + WORD <= code.len; i += WORD) {
        const uint32_t word = get_u32(code.data + i);
        if ((word & 0x7c000000u) == B && // b and bl
            addr + i + (uint64_t)(sign_extended(word & 0x3ffffffu, 26) * WORD) == to) {
            return true;
        }
    }
    return false;
}

enum relocate_refusal
relocate_write_jump(uint64_t entry_addr, uint64_t stub_addr, uint8_t out[PATCH_BYTES])
{
    uint32_t word;
    if (!jump_word(entry_addr, stub_addr, &word)) {
        return RELOCATE_OUT_OF_REACH;
    }
    put_u32(out, word);
    return RELOCATE_OK;
}

void relocate_write_stub(const struct relocated *moved,
                         uint32_t index,
                         uint64_t hook_addr,
                         uint8_t out[STUB_BYTES])
{
    const uint32_t undoing = moved->is_signing ? get_u32(moved->code) | AUT_BIT : NOP;
    put_u32(out, undoing);
    put_u32(out + 4, 0x52800011u | (index & 0xffff) << 5); // movz w17, #low
    put_u32(out + 8, 0x72a00011u | (index >> 16) << 5);    // movk w17, #high, lsl #16
    put_u32(out + 12, LDR_LIT | 12 / WORD << 5 | X16);     // ldr x16, hook
    put_u32(out + 16, 0xd61f0000u | X16 << 5);             // br x16
    put_u32(out + 20, NOP);
    put_u64(out + 24, hook_addr);
}

// There are no such stubs here: the recorder plans none without an address for them.
void relocate_write_abi_stub(uint64_t stub_addr, uint64_t hook_addr, uint8_t out[STUB_BYTES])
{
    (void)stub_addr;
    relocate_write_stub(&(struct relocated){0}, 0, hook_addr, out);
}

void relocate_write_abi_nothrow(uint64_t nothrow_addr, uint8_t out[STUB_BYTES])
{
    (void)nothrow_addr; // the agent's table has it
    (void)out;
}
