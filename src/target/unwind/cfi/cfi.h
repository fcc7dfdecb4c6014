// SPDX-License-Identifier: MIT
// cfi: runs the call frame instructions of a function up to a pc (DWARF 5, 6.4), and applies the
// resulting row to a full register state.
//
// The row is small, because hooks fill it on any stack: offsets have 32 bits, expressions are
// offsets in the image. Trust: none in the bytes; every instruction advances, so a program ends.
// Context: T and H; allocates nothing.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "target/unwind/cfi/cpu.h"
#include "target/unwind/cfi/eh_frame.h"
#include "target/unwind/cfi/expression.h"
#include "target/unwind/cfi/memory_reader.h"

// How to find the caller's value of a register. Its operand is in cfi_row.value.
enum cfi_kind {
    CFI_UNSPECIFIED = 0, // the ABI decides: kept if callee-saved, else unknown
    CFI_SAME,
    CFI_UNDEFINED,      // unknown; for the return address: this is the last frame
    CFI_OFFSET,         // in memory at CFA + value
    CFI_VAL_OFFSET,     // is CFA + value
    CFI_REGISTER,       // in register `value` of this frame
    CFI_EXPRESSION,     // in memory at the result of the expression
    CFI_VAL_EXPRESSION, // is the result of the expression
};

struct cfi_row {
    bool cfa_is_expression;
    bool return_signed; // AArch64: the return address carries an authentication code
    uint8_t return_register;
    uint32_t cfa_register;
    int64_t cfa_value; // offset from the register, or offset of the expression
    uint8_t kind[ARCH_REG_COUNT];
    int32_t value[ARCH_REG_COUNT]; // an expression: its offset in the image, at its length
};

// Compute the row that is valid at `pc`, the address of the instruction itself (return address -
// 1). ERR_CORRUPT, ERR_UNSUPPORTED, ERR_LIMIT: compilers do not write such a program.
MUST_USE enum err cfi_row_at(const struct eh_function *function, uint64_t pc, struct cfi_row *out);

// Return the bytes of an expression that a row refers to; empty if they do not fit the image.
struct bytes cfi_expression(const struct eh_image *image, int64_t place);

// Step `cpu` to the caller by `row`. If the return address is undefined, set *last and leave `cpu`
// unchanged. ERR_IO: memory cannot be read; ERR_UNSUPPORTED: it depends on an unknown register.
MUST_USE enum err cfi_step(const struct eh_function *function,
                           const struct cfi_row *row,
                           struct memory_reader *memory,
                           struct cpu *cpu,
                           bool *last);
