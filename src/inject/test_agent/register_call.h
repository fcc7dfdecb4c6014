// SPDX-License-Identifier: MIT
// register_call (AArch64): calls a function with chosen contents of all registers, and functions
// that say with what they were called.
//
// Context: tests; one thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

// By their places in register_call.c.
struct registers {
    uint64_t x[31];
    uint64_t sp;
    uint64_t flags; // NZCV
    uint64_t fpsr;
    uint64_t q[32][2];
};
_Static_assert(offsetof(struct registers, sp) == 248, "behind x30");
_Static_assert(offsetof(struct registers, flags) == 256, "behind sp");
_Static_assert(offsetof(struct registers, q) == 272, "behind fpsr");

// What an original function has got, and is to return.
struct original {
    uint64_t arguments[8];
    uint64_t calls;
    uint64_t result;
};

// Of original_with_result and original_without_result, and of nothrow_form.
extern struct original original_seen;
extern struct original nothrow_seen;

// Call `function` with the registers of `in`, but for x16, x17, x29, x30 and sp, which are our own.
// `out` gets all registers after it has returned, and in `sp` the sp of before minus that.
void call_with_registers(const struct registers *in, struct registers *out, uint64_t function);

// Each begins with an instruction that depends on its address.
void original_with_result(void);    // x0 = original_seen.result
void original_without_result(void); // leaves x0 alone
void nothrow_form(void);            // x0 = nothrow_seen.result

// Where call_with_registers goes on.
extern const char return_of_call[];
