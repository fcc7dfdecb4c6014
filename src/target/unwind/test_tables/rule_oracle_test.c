// SPDX-License-Identifier: MIT
// Executes every row of real unwind tables by our code and by libdw.
//
// For each row that libdw finds, the test makes up a random register file and an imaginary memory
// (a hash of the address). It executes the step to the caller three times: by the expressions that
// libdw gives for the row, with an evaluator of its own; by our interpreter; by our compact rule.
// All must agree on every register.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/test_support/by_night.h"
#include "subjects_arch.h"
#include "target/unwind/cfi/cfi.h"
#include "target/unwind/cfi/eh_frame.h"
#include "target/unwind/cfi/rule.h"
#include "target/unwind/cfi/rule_compile.h"
#include "target/unwind/walk/step.h"

struct subject {
    int fd;
    Elf *elf;
    Dwarf_CFI *cfi;
    char *image_bytes;
    struct eh_table table;
};

struct tally {
    uint64_t functions;
    uint64_t rows;
    uint64_t compact;
    uint64_t complex;
    uint64_t in_register; // the return address is not in memory: AArch64, before it is saved
    uint64_t last;
    uint64_t refused_by_both;
};

static uint64_t imaginary_word(uint64_t addr)
{
    return hash_mix(addr ^ 0x5bd1e9955bd1e995ULL);
}

static bool read_imaginary(struct memory_reader *self, uint64_t addr, uint64_t *word)
{
    (void)self;
    *word = imaginary_word(addr);
    return true;
}

static bool load_imaginary(void *context, uint64_t addr, uint64_t *word)
{
    return read_imaginary(context, addr, word);
}

// --- An evaluator of libdw's decoded expressions. ---

struct evaluator {
    const struct cpu *cpu;
    uint64_t pc;
    uint64_t cfa;
    uint64_t stack[32];
    unsigned depth;
    bool is_value; // DW_OP_stack_value was met
    bool failed;
};

static void push(struct evaluator *e, uint64_t value)
{
    if (e->depth == ARRAY_LEN(e->stack)) {
        e->failed = true;
        return;
    }
    e->stack[e->depth++] = value;
}

static uint64_t pop(struct evaluator *e)
{
    if (e->depth == 0) {
        e->failed = true;
        return 0;
    }
    return e->stack[--e->depth];
}

static uint64_t register_value(struct evaluator *e, uint64_t reg)
{
    if (reg == ARCH_REG_PC) {
        return e->pc;
    }
    if (!cpu_knows(e->cpu, reg)) {
        e->failed = true;
        return 0;
    }
    return e->cpu->value[reg];
}

static void binary(struct evaluator *e, uint8_t atom)
{
    uint64_t b = pop(e);
    uint64_t a = pop(e);
    switch (atom) {
    case DW_OP_plus:
        push(e, a + b);
        return;
    case DW_OP_minus:
        push(e, a - b);
        return;
    case DW_OP_and:
        push(e, a & b);
        return;
    case DW_OP_or:
        push(e, a | b);
        return;
    case DW_OP_mul:
        push(e, a * b);
        return;
    case DW_OP_shl:
        push(e, a << b);
        return;
    case DW_OP_ge:
        push(e, (int64_t)a >= (int64_t)b);
        return;
    default:
        e->failed = true;
    }
}

static void execute(struct evaluator *e, const Dwarf_Op *op)
{
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
        push(e, register_value(e, op->atom - DW_OP_breg0) + op->number);
        return;
    }
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
        push(e, op->atom - DW_OP_lit0);
        return;
    }
    switch (op->atom) {
    case DW_OP_bregx:
        push(e, register_value(e, op->number) + op->number2);
        return;
    case DW_OP_regx:
        e->is_value = true;
        push(e, register_value(e, op->number));
        return;
    case DW_OP_call_frame_cfa:
        push(e, e->cfa);
        return;
    case DW_OP_plus_uconst:
        push(e, pop(e) + op->number);
        return;
    case DW_OP_const1s:
    case DW_OP_const1u:
    case DW_OP_const2s:
    case DW_OP_const2u:
    case DW_OP_const4s:
    case DW_OP_const4u:
    case DW_OP_const8s:
    case DW_OP_const8u:
    case DW_OP_consts:
    case DW_OP_constu:
        push(e, op->number);
        return;
    case DW_OP_deref:
        push(e, imaginary_word(pop(e)));
        return;
    case DW_OP_stack_value:
        e->is_value = true;
        return;
    default:
        binary(e, op->atom);
    }
}

static bool evaluate(struct evaluator *e, const Dwarf_Op *ops, size_t count, uint64_t *out)
{
    e->depth = 0;
    e->is_value = false;
    e->failed = false;
    for (size_t i = 0; i < count; i++) {
        execute(e, &ops[i]);
    }
    *out = pop(e);
    return !e->failed;
}

// --- The two sides. ---

enum fate {
    FATE_UNKNOWN,
    FATE_SAME,
    FATE_VALUE,
};

// Compute register `reg` of the caller according to libdw.
static enum fate oracle_register(Dwarf_Frame *frame, struct evaluator *e, int reg, uint64_t *out)
{
    Dwarf_Op mem[3];
    Dwarf_Op *ops = NULL;
    size_t count = 0;
    assert_int_equal(dwarf_frame_register(frame, reg, mem, &ops, &count), 0);
    if (count == 0) {
        return ops == NULL ? FATE_SAME : FATE_UNKNOWN;
    }
    assert_true(evaluate(e, ops, count, out));
    if (!e->is_value) {
        *out = imaginary_word(*out);
    }
    return FATE_VALUE;
}

static struct cpu random_cpu(uint64_t seed)
{
    struct cpu cpu = {.known = ((uint64_t)1 << ARCH_REG_PC) - 1};
    for (unsigned i = 0; i < ARCH_REG_PC; i++) {
        cpu.value[i] = hash_mix(seed * 64 + i) & 0x7ffffffffff8;
    }
    return cpu;
}

#define FAIL_ROW(format, ...) \
    fail_msg("%s pc %#llx: " format, name, (unsigned long long)pc, __VA_ARGS__)

static void compare_rule(
    const char *name, uint64_t pc, uint64_t rule, const struct cpu *before, const struct cpu *after)
{
    struct frame_regs regs = {
        .pc = pc + 1, .sp = before->value[ARCH_REG_SP], .fp = before->value[ARCH_REG_FP]};
    assert_int_equal(step_rule(rule, &regs, load_imaginary, NULL), STEP_OK);
    if (regs.pc != after->pc || regs.sp != after->value[ARCH_REG_SP]) {
        FAIL_ROW("rule %#llx gives pc %#llx sp %#llx, interpreter %#llx %#llx",
                 (unsigned long long)rule, (unsigned long long)regs.pc, (unsigned long long)regs.sp,
                 (unsigned long long)after->pc, (unsigned long long)after->value[ARCH_REG_SP]);
    }
    if (cpu_knows(after, ARCH_REG_FP) && regs.fp != after->value[ARCH_REG_FP]) {
        FAIL_ROW("rule %#llx gives fp %#llx, interpreter %#llx", (unsigned long long)rule,
                 (unsigned long long)regs.fp, (unsigned long long)after->value[ARCH_REG_FP]);
    }
}

// The ABI decides about registers that the table leaves unspecified, and libdw 0.188 is wrong about
// rbx. For these only the absence of a rule in libdw is compared.
static void compare_registers(const char *name,
                              uint64_t pc,
                              Dwarf_Frame *frame,
                              struct evaluator *e,
                              const struct cfi_row *row,
                              const struct cpu *after)
{
    for (unsigned reg = 0; reg < ARCH_REG_PC; reg++) {
        uint64_t want = 0;
        enum fate fate = oracle_register(frame, e, (int)reg, &want);
        bool is_known = cpu_knows(after, reg);
        bool agrees = fate != FATE_VALUE;
        if (reg == ARCH_REG_SP) {
            continue; // compared already
        }
        if (row->kind[reg] != CFI_UNSPECIFIED) {
            want = fate == FATE_SAME ? e->cpu->value[reg] : want;
            agrees = is_known == (fate != FATE_UNKNOWN) && (!is_known || after->value[reg] == want);
        }
        if (!agrees) {
            FAIL_ROW("register %u is %#llx (known: %d), libdw says %#llx (fate %d)", reg,
                     (unsigned long long)after->value[reg], is_known, (unsigned long long)want,
                     (int)fate);
        }
    }
}

static void compare_step(const char *name,
                         const struct eh_function *function,
                         const struct cfi_row *row,
                         uint64_t pc,
                         Dwarf_Frame *frame,
                         struct tally *tally)
{
    struct memory_reader memory = {.read = read_imaginary};
    const struct cpu before = random_cpu(pc);
    struct cpu after = before;
    after.pc = pc + 1;
    struct evaluator e = {.cpu = &before, .pc = pc};
    uint64_t rule = rule_from_row(function, row, pc);
    bool last = false;
    enum err err = cfi_step(function, row, &memory, &after, &last);

    Dwarf_Op *ops = NULL;
    size_t count = 0;
    bool signal = false;
    const int return_register = dwarf_frame_info(frame, NULL, NULL, &signal);
    uint64_t want_pc = 0;
    assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
    enum fate fate = oracle_register(frame, &e, return_register, &want_pc);
    const bool is_in_register = row->kind[return_register] <= CFI_SAME;
    if (fate == FATE_UNKNOWN && !is_in_register) {
        if (!last || rule != rule_stopping(RULE_LAST)) {
            FAIL_ROW("libdw says it is the last frame, our rule is %#llx",
                     (unsigned long long)rule);
        }
        tally->last++;
        return;
    }
    if (fate == FATE_UNKNOWN && err == ERR_UNSUPPORTED) {
        tally->in_register++; // in a register that calls do not keep: neither side can know it
        return;
    }
    if (err != ERR_OK || last) {
        FAIL_ROW("cfi_step failed with %d, last %d", (int)err, last);
    }
    if (!evaluate(&e, ops, count, &e.cfa)) {
        FAIL_ROW("the test cannot evaluate a CFA of %zu operations", count);
    }
    fate = oracle_register(frame, &e, return_register, &want_pc); // again: e.cfa is known now
    assert_true(fate == FATE_VALUE || is_in_register);
    want_pc = (is_in_register ? before.value[return_register] : want_pc) + (signal ? 1 : 0);
    uint64_t want_sp = e.cfa;
    (void)oracle_register(frame, &e, ARCH_REG_SP, &want_sp); // longjmp, for one, restores it
    if (after.value[ARCH_REG_SP] != want_sp || after.pc != want_pc) {
        FAIL_ROW("sp %#llx pc %#llx, libdw says %#llx %#llx",
                 (unsigned long long)after.value[ARCH_REG_SP], (unsigned long long)after.pc,
                 (unsigned long long)want_sp, (unsigned long long)want_pc);
    }
    compare_registers(name, pc, frame, &e, row, &after);
    if (rule == rule_stopping(RULE_COMPLEX)) {
        tally->complex += !is_in_register;
        tally->in_register += is_in_register;
        return;
    }
    if ((rule & RULE_STOP) != 0) {
        FAIL_ROW("rule stops: %#llx", (unsigned long long)rule);
    }
    compare_rule(name, pc, rule, &before, &after);
    tally->compact++;
}

// Compare the row at `pc`; return the beginning of the next one.
static uint64_t compare_row(const char *name,
                            const struct subject *s,
                            uint64_t pc,
                            const struct eh_function *expected,
                            struct tally *tally)
{
    Dwarf_Frame *frame = NULL;
    int oracle = dwarf_cfi_addrframe(s->cfi, pc, &frame);
    struct eh_function function;
    struct cfi_row row;
    enum err err = eh_find(&s->table, pc, &function);
    if (err == ERR_OK) {
        err = cfi_row_at(&function, pc, &row);
    }
    if (oracle != 0 && err != ERR_OK) {
        tally->refused_by_both++;
        return expected->end;
    }
    if (oracle != 0 || err != ERR_OK) {
        FAIL_ROW("libdw: %s; ours: %d", oracle == 0 ? "found" : dwarf_errmsg(-1), (int)err);
    }
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    (void)dwarf_frame_info(frame, &start, &end, NULL);
    if (function.start != expected->start || function.end != expected->end || end <= pc) {
        FAIL_ROW("found %#llx..%#llx", (unsigned long long)function.start,
                 (unsigned long long)function.end);
    }
    compare_step(name, &function, &row, pc, frame, tally);
    tally->rows++;
    free(frame);
    return end;
}

static void compare_function(const char *name,
                             const struct subject *s,
                             const struct eh_function *function,
                             struct tally *tally)
{
    tally->functions++;
    for (uint64_t pc = function->start; pc < function->end;) {
        uint64_t next = compare_row(name, s, pc, function, tally);
        if (next - 1 > pc && next <= function->end) {
            (void)compare_row(name, s, next - 1, function, tally);
        }
        pc = next;
    }
}

static bool open_tables(const char *path, struct subject *s)
{
    *s = (struct subject){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (s->fd < 0) {
        return false;
    }
    s->elf = elf_begin(s->fd, ELF_C_READ_MMAP, NULL);
    s->cfi = s->elf != NULL ? dwarf_getcfi_elf(s->elf) : NULL;
    size_t count = 0;
    size_t size = 0;
    char *file = s->elf != NULL ? elf_rawfile(s->elf, &size) : NULL;
    if (s->cfi == NULL || file == NULL || elf_getphdrnum(s->elf, &count) != 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(s->elf, (int)i, &header) != NULL && header.p_type == PT_GNU_EH_FRAME) {
            s->table.hdr_addr = header.p_vaddr;
        }
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr load;
        if (gelf_getphdr(s->elf, (int)i, &load) != NULL && load.p_type == PT_LOAD &&
            s->table.hdr_addr >= load.p_vaddr && s->table.hdr_addr - load.p_vaddr < load.p_filesz) {
            s->table.image =
                (struct eh_image){.bytes = {(const uint8_t *)file + load.p_offset, load.p_filesz},
                                  .addr = load.p_vaddr};
        }
    }
    return s->table.image.bytes.data != NULL;
}

static void close_tables(struct subject *s)
{
    (void)dwarf_cfi_end(s->cfi); // accepts NULL
    (void)elf_end(s->elf);
    (void)close(s->fd);
}

static uint64_t count_functions(const struct eh_table *table)
{
    uint64_t count = 0;
    uint64_t addr = eh_first(table);
    for (uint64_t next = addr; eh_next(table, &next);) {
        count++;
    }
    return count;
}

static void compare_file(const char *path)
{
    struct subject s;
    assert_true(open_tables(path, &s));
    uint64_t entries = count_functions(&s.table);
    assert_true(entries > 2);
    struct tally tally = {0};
    uint64_t addr = eh_first(&s.table);
    const uint64_t step = entries > 1000 ? step_by_day(12) : 1;
    uint64_t count = 0;
    for (uint64_t next = addr; eh_next(&s.table, &next); addr = next) {
        struct eh_function function;
        if (count++ % step == 0 && eh_read_fde(&s.table, addr, &function) == ERR_OK) {
            compare_function(path, &s, &function, &tally);
        }
    }
    print_message("%s: %llu of %llu entries, %llu rows: %llu compact, %llu last, %llu complex, "
                  "%llu with the return address in a register, %llu refused by both\n",
                  path, (unsigned long long)tally.functions, (unsigned long long)entries,
                  (unsigned long long)tally.rows, (unsigned long long)tally.compact,
                  (unsigned long long)tally.last, (unsigned long long)tally.complex,
                  (unsigned long long)tally.in_register, (unsigned long long)tally.refused_by_both);
    assert_true(tally.compact > 0);
    assert_true(tally.refused_by_both == 0);
    // The interpreter is rarely needed in any table.
    assert_true(tally.complex <= tally.rows / 20);
    close_tables(&s);
}

static void every_row_of_every_subject_agrees(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        compare_file(subjects[i]);
    }
}

int main(void)
{
    (void)elf_version(EV_CURRENT);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_every_subject_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
