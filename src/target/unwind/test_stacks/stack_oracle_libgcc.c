// SPDX-License-Identifier: MIT
// stack_oracle_libgcc: the oracle by libgcc; see stack_oracle.h. It recognizes signal frames
// itself.
#include <unwind.h>

#include "stack_oracle.h"

const char *const stack_oracle_name = "libgcc";
const bool stack_oracle_knows_sigreturn = true;

struct visitor {
    void (*visit)(void *context, const struct oracle_frame *frame);
    void *context;
};

static _Unwind_Reason_Code trace(struct _Unwind_Context *at, void *argument)
{
    const struct visitor *visitor = argument;
    int was_interrupted = 0;
    const struct oracle_frame frame = {.pc = _Unwind_GetIPInfo(at, &was_interrupted),
                                       .sp = _Unwind_GetCFA(at),
                                       .was_interrupted = was_interrupted != 0};
    visitor->visit(visitor->context, &frame);
    return _URC_NO_REASON;
}

void stack_oracle_walk(uint64_t restorer_pc,
                       void (*visit)(void *context, const struct oracle_frame *frame),
                       void *context)
{
    (void)restorer_pc;
    struct visitor visitor = {.visit = visit, .context = context};
    (void)_Unwind_Backtrace(trace, &visitor); // ends with an error where our walk ends, too
}
