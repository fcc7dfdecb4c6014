// SPDX-License-Identifier: MIT
#include "target/unwind/walk/full_walk.h"

#include "target/unwind/cfi/rule.h"

static bool load_word(void *context, uint64_t addr, uint64_t *word)
{
    struct memory_reader *memory = context;
    return memory->read(memory, addr, word);
}

static enum step_result
step(struct full_walk *walk, struct rule_view rules, uint64_t rule, struct frame_regs *regs)
{
    if ((rule & RULE_STOP) == 0) {
        return step_rule(rule, regs, load_word, walk->memory);
    }
    enum step_result result = STEP_UNFINISHED;
    switch (rule_stop_reason(rule)) {
    case RULE_LAST:
    case RULE_ENTRY:
        return STEP_LAST;
    case RULE_NO_TABLE:
        walk->used_frame_pointer = true;
        walk->memory->is_guess = true;
        result = step_frame_pointer(regs, frame_record_limit(&walk->own, regs->sp), load_word,
                                    walk->memory);
        if (result == STEP_OK) {
            place_behind_record(rules, regs);
        }
        return result;
    case RULE_COMPLEX:
        return STEP_COMPLEX;
    case RULE_BROKEN:
        break;
    }
    return STEP_UNFINISHED;
}

enum walk_end
full_walk_run(struct full_walk *walk, const struct unwind_regs *start, struct frame_sink *sink)
{
    struct rule_view rules = rule_cache_view();
    struct frame_regs regs = {.pc = start->pc, .sp = start->sp, .fp = start->fp};
    walk->used_frame_pointer = false;
    walk->rising = true;
    while (step_may_be_code(regs.pc) && sink->count < UNWIND_FRAMES_MAX) {
        uint64_t old_sp = regs.sp;
        uint64_t old_pc = regs.pc;
        uint64_t rule = rule_cache_get(rules, regs.pc);
        frame_sink_push(sink, regs.pc + (rule == rule_stopping(RULE_ENTRY) ? 1 : 0));
        walk->last_sp = regs.sp;
        enum step_result result = step(walk, rules, rule, &regs);
        if (result == STEP_LAST) {
            return WALK_FINISHED;
        }
        if (result == STEP_COMPLEX) {
            return WALK_COMPLEX;
        }
        rules.is_guess = rules.is_guess || rule_leads_to_guesses(rule);
        bool stands_still = regs.sp == old_sp && regs.pc == old_pc;
        if (result != STEP_OK || stands_still) {
            return WALK_UNFINISHED;
        }
        walk->rising = walk->rising && regs.sp > old_sp;
    }
    return WALK_UNFINISHED;
}
