// SPDX-License-Identifier: MIT
// stack_oracle_libunwind: the oracle by libunwind; see stack_oracle.h.
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "stack_oracle.h"

const char *const stack_oracle_name = "libunwind";
const bool stack_oracle_knows_sigreturn = false; // only inside of modules

void stack_oracle_walk(uint64_t restorer_pc,
                       void (*visit)(void *context, const struct oracle_frame *frame),
                       void *context)
{
    unw_context_t registers;
    unw_cursor_t cursor;
    unw_getcontext(&registers);
    unw_init_local(&cursor, &registers);
    unw_word_t inner_pc = 0;
    do {
        unw_word_t pc = 0;
        unw_word_t sp = 0;
        unw_get_reg(&cursor, UNW_REG_IP, &pc);
        unw_get_reg(&cursor, UNW_REG_SP, &sp);
        const struct oracle_frame frame = {
            .pc = pc, .sp = sp, .was_interrupted = inner_pc != 0 && inner_pc == restorer_pc};
        inner_pc = pc;
        visit(context, &frame);
    } while (unw_step(&cursor) > 0);
}
