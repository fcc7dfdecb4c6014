// SPDX-License-Identifier: MIT
#include "target/unwind/walk/precise_walk.h"

#include "capture_arch.h"
#include "record_arch.h"
#include "target/unwind/cfi/cfi.h"
#include "target/unwind/cfi/rule_compile.h"
#include "target/unwind/environment/module_copy.h"
#include "target/unwind/environment/module_table.h"
#include "target/unwind/environment/self_memory.h"
#include "target/unwind/environment/signal_frame.h"
#include "target/unwind/walk/step.h"

// Upper limit of our own frames between precise_walk_self and the frame of `start`; there are far
// fewer.
#define OWN_FRAMES_MAX 64u

static bool load_word(void *context, uint64_t addr, uint64_t *word)
{
    struct memory_reader *memory = context;
    return memory->read(memory, addr, word);
}

static enum step_result step_without_table(const struct unwind_source *source, struct cpu *cpu)
{
    if (!cpu_knows(cpu, ARCH_REG_FP)) {
        return STEP_UNFINISHED;
    }
    struct frame_regs regs = {
        .pc = cpu->pc, .sp = cpu->value[ARCH_REG_SP], .fp = cpu->value[ARCH_REG_FP]};
    enum step_result result = step_frame_pointer(&regs, frame_record_limit(&source->own, regs.sp),
                                                 load_word, source->memory);
    if (result == STEP_OK) {
        cpu->pc = regs.pc;
        cpu_set(cpu, ARCH_REG_SP, regs.sp);
        cpu_set(cpu, ARCH_REG_FP, regs.fp);
    }
    return result;
}

// The unwind information of a frame's code.
struct code {
    struct eh_table table; // the function points into it
    struct eh_function function;
    enum err err;  // ERR_NOT_FOUND: no table covers it
    bool is_entry; // see eh_begins_function()
    bool is_signal_frame;
    bool is_stub;
};

static void
find_code(const struct unwind_source *source, uint64_t ret_addr, bool is_guess, struct code *code)
{
    code->table = (struct eh_table){.fetched = NULL};
    code->err = ERR_NOT_FOUND;
    code->is_entry = false;
    code->is_signal_frame = false;
    code->is_stub = false;
    if (source->find_table(source, ret_addr - 1, is_guess, &code->table)) {
        code->err = eh_find(&code->table, ret_addr - 1, &code->function);
        code->is_entry = code->err == ERR_NOT_FOUND && eh_begins_function(&code->table, ret_addr);
    }
    if (code->err != ERR_OK || code->function.signal_frame) {
        code->is_signal_frame = signal_frame_begins(source->memory, ret_addr);
        code->is_entry = code->is_entry && !code->is_signal_frame;
        code->is_stub = code->err == ERR_NOT_FOUND && !code->is_signal_frame &&
                        signal_frame_is_in_stub(source->memory, ret_addr - 1);
    }
}

static enum step_result step(const struct unwind_source *source,
                             const struct code *code,
                             struct cpu *cpu,
                             bool *used_frame_pointer)
{
    if (code->is_entry) {
        return STEP_LAST;
    }
    if (code->is_signal_frame) {
        return signal_frame_step(source->memory, cpu) == ERR_OK ? STEP_OK : STEP_UNREADABLE;
    }
    if (code->is_stub) {
        return signal_frame_step_from_stub(cpu) == ERR_OK ? STEP_OK : STEP_UNFINISHED;
    }
    if (code->err == ERR_NOT_FOUND) {
        *used_frame_pointer = true;
        source->memory->is_guess = true;
        return step_without_table(source, cpu);
    }
    struct cfi_row row;
    bool last = false;
    if (code->err != ERR_OK || cfi_row_at(&code->function, cpu->pc - 1, &row) != ERR_OK ||
        cfi_step(&code->function, &row, source->memory, cpu, &last) != ERR_OK) {
        return STEP_UNFINISHED;
    }
    return last ? STEP_LAST : STEP_OK;
}

// Correct sp after a step over a frame record; see arch_sp_behind_record().
static void correct_sp(const struct code *code, struct cpu *cpu)
{
    struct cfi_row row;
    if (code->err == ERR_OK && cfi_row_at(&code->function, cpu->pc - 1, &row) == ERR_OK) {
        const uint64_t rule = rule_from_row(&code->function, &row, cpu->pc - 1);
        cpu_set(cpu, ARCH_REG_SP,
                arch_sp_behind_record(cpu->value[ARCH_REG_SP], cpu->value[ARCH_REG_FP], rule));
    }
}

enum walk_end precise_walk_run(const struct unwind_source *source,
                               const struct cpu *cpu,
                               struct frame_sink *sink,
                               bool *used_frame_pointer)
{
    struct cpu at = *cpu;
    bool is_guess = false;
    bool is_followed = false;
    while (step_may_be_code(at.pc) && sink->count < UNWIND_FRAMES_MAX) {
        struct code code;
        find_code(source, at.pc, is_guess, &code);
        if (ARCH_RECORD_IS_INSIDE && is_followed) {
            correct_sp(&code, &at);
        }
        frame_sink_push(sink, at.pc + (code.is_entry ? 1 : 0));
        uint64_t old_sp = at.value[ARCH_REG_SP];
        uint64_t old_pc = at.pc;
        is_followed = false;
        enum step_result result = step(source, &code, &at, &is_followed);
        module_copy_close(&code.table);
        *used_frame_pointer = *used_frame_pointer || is_followed;
        if (result == STEP_LAST) {
            return WALK_FINISHED;
        }
        is_guess = is_guess || is_followed || code.is_signal_frame ||
                   (code.err == ERR_OK && code.function.signal_frame);
        bool stands_still = at.value[ARCH_REG_SP] == old_sp && at.pc == old_pc;
        if (result != STEP_OK || stands_still) {
            return WALK_UNFINISHED;
        }
    }
    return WALK_UNFINISHED;
}

static bool
find_own_table(const struct unwind_source *self, uint64_t pc, bool is_guess, struct eh_table *out)
{
    (void)self;
    struct module_span span;
    if (!is_guess || module_table_stays(pc)) {
        return module_table_find(pc, &span) && module_table_unwind(&span, out);
    }
    return module_table_find_unread(pc, &span) && span.hdr_addr != 0 &&
           module_copy_unwind(&span, out);
}

NOINLINE enum walk_end precise_walk_self(const struct stack_bounds *own,
                                         const struct unwind_regs *start,
                                         struct frame_sink *sink,
                                         bool *used_frame_pointer)
{
    struct self_memory memory = self_memory_over(own);
    const struct unwind_source source = {
        .memory = &memory.reader, .find_table = find_own_table, .own = *own};
    struct cpu cpu = {.known = ARCH_CALLEE_SAVED | (uint64_t)1 << ARCH_REG_SP};
    cpu.pc = arch_capture(cpu.value) + 1;
    for (unsigned i = 0; i < OWN_FRAMES_MAX; i++) {
        if (cpu.value[ARCH_REG_SP] == start->sp && cpu.pc == start->pc) {
            return precise_walk_run(&source, &cpu, sink, used_frame_pointer);
        }
        struct code code;
        bool unused = false;
        find_code(&source, cpu.pc, false, &code);
        if (step(&source, &code, &cpu, &unused) != STEP_OK) {
            break;
        }
    }
    frame_sink_push(sink, start->pc);
    return WALK_UNFINISHED;
}
