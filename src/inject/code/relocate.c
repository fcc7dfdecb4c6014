// SPDX-License-Identifier: MIT
#include "inject/code/relocate.h"

const char *relocate_refusal_text(enum relocate_refusal refusal)
{
    static const char *const texts[] = {
        [RELOCATE_OK] = "",
        [RELOCATE_UNDECODABLE] = "has instructions that cairn cannot decode",
        [RELOCATE_TOO_SHORT] = "is too short for a jump",
        [RELOCATE_BRANCH_INTO] = "branches back into its first bytes",
        [RELOCATE_CALL_RETURNS_INTO] = "calls a function that returns into its first bytes",
        [RELOCATE_UNMOVABLE] = "begins with an instruction that cannot be moved",
        [RELOCATE_BREAKPOINT] = "has a breakpoint of a debugger or tracer",
        [RELOCATE_OUT_OF_REACH] = "is too far from free memory for a jump",
    };
    return texts[refusal];
}
