// SPDX-License-Identifier: MIT
// expression: evaluates the DWARF expressions that occur in CFI (DWARF 5, 2.5 and 6.4.2).
//
// One evaluator, two modes. In the concrete mode registers have values and memory can be read, so
// every result is a number. In the symbolic mode (no cpu) only the pc is known; sp, fp and the CFA
// stay symbols, to which numbers can be added and which can be dereferenced once, so that a result
// can become part of a compact rule. An expression that fits neither mode is ERR_UNSUPPORTED.
// Trust: none in the bytes; the stack is bounded, and so is the number of operations, since there
// are no backward branches. Context: T and H; allocates nothing.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "target/unwind/cfi/cpu.h"
#include "target/unwind/cfi/memory_reader.h"

enum term_base {
    TERM_NUMBER = 0,
    TERM_SP,
    TERM_FP,
    TERM_CFA,
};

// base + offset, or the 8 bytes at that address if `deref`.
struct term {
    uint64_t offset;
    enum term_base base;
    bool deref;
};

struct expression_world {
    uint64_t pc;                  // address of the instruction itself
    const struct cpu *cpu;        // NULL: symbolic
    struct memory_reader *memory; // used only if `cpu` is set
};

// Evaluate `code` with `initial` (may be NULL) on the stack. ERR_UNSUPPORTED: an operation or a
// form that this mode does not have. ERR_CORRUPT: malformed. ERR_IO: memory cannot be read.
MUST_USE enum err expression_evaluate(struct bytes code,
                                      const struct expression_world *world,
                                      const struct term *initial,
                                      struct term *out);
