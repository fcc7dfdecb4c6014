// SPDX-License-Identifier: MIT
// register_call: see register_call.h. The functions change x16 and x17, and no other register.
//
// The symbols are global, because linkers find no local ones by way of the GOT.
#include "inject/test_agent/register_call.h"

struct original original_seen;
struct original nothrow_seen;

// For all vector registers, at x0.
#define PAIR(instruction, first, second) \
    "    " instruction " q" #first ", q" #second ", [x0, #16 * " #first "]\n"
#define VECTORS(instruction)  \
    PAIR(instruction, 0, 1)   \
    PAIR(instruction, 2, 3)   \
    PAIR(instruction, 4, 5)   \
    PAIR(instruction, 6, 7)   \
    PAIR(instruction, 8, 9)   \
    PAIR(instruction, 10, 11) \
    PAIR(instruction, 12, 13) \
    PAIR(instruction, 14, 15) \
    PAIR(instruction, 16, 17) \
    PAIR(instruction, 18, 19) \
    PAIR(instruction, 20, 21) \
    PAIR(instruction, 22, 23) \
    PAIR(instruction, 24, 25) \
    PAIR(instruction, 26, 27) \
    PAIR(instruction, 28, 29) \
    PAIR(instruction, 30, 31)

#define LOAD_VECTORS  VECTORS("ldp")
#define STORE_VECTORS VECTORS("stp")

__asm__(".text\n"
        "    .globl call_with_registers, return_of_call\n"
        "    .type call_with_registers, @function\n"
        "call_with_registers:\n"
        "    .cfi_startproc\n"
        "    stp x29, x30, [sp, #-192]!\n"
        "    .cfi_def_cfa_offset 192\n"
        "    .cfi_offset x29, -192\n"
        "    .cfi_offset x30, -184\n"
        "    mov x29, sp\n"
        "    stp x19, x20, [sp, #16]\n"
        "    stp x21, x22, [sp, #32]\n"
        "    stp x23, x24, [sp, #48]\n"
        "    stp x25, x26, [sp, #64]\n"
        "    stp x27, x28, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    str x1, [sp, #160]\n"
        "    mov x17, x0\n"
        "    mov x16, x2\n"
        "    ldr x0, [x17, #256]\n"
        "    msr nzcv, x0\n"
        "    ldr x0, [x17, #264]\n"
        "    msr fpsr, x0\n"
        "    add x0, x17, #272\n" LOAD_VECTORS
        "    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "    ldr x\\n, [x17, #(8 * \\n)]\n"
        "    .endr\n"
        "    .irp n, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28\n"
        "    ldr x\\n, [x17, #(8 * \\n)]\n"
        "    .endr\n"
        "    blr x16\n"
        "return_of_call:\n"
        "    mov x16, sp\n"
        "    sub x17, x29, x16\n"
        "    ldr x16, [x16, #160]\n"
        "    str x17, [x16, #248]\n"
        "    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "    str x\\n, [x16, #(8 * \\n)]\n"
        "    .endr\n"
        "    .irp n, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30\n"
        "    str x\\n, [x16, #(8 * \\n)]\n"
        "    .endr\n"
        "    mrs x0, nzcv\n"
        "    str x0, [x16, #256]\n"
        "    mrs x0, fpsr\n"
        "    str x0, [x16, #264]\n"
        "    add x0, x16, #272\n" STORE_VECTORS "    ldp d14, d15, [sp, #144]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp x27, x28, [sp, #80]\n"
        "    ldp x25, x26, [sp, #64]\n"
        "    ldp x23, x24, [sp, #48]\n"
        "    ldp x21, x22, [sp, #32]\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x29, x30, [sp], #192\n"
        "    .cfi_def_cfa_offset 0\n"
        "    .cfi_restore x29\n"
        "    .cfi_restore x30\n"
        "    ret\n"
        "    .cfi_endproc\n"
        "    .size call_with_registers, . - call_with_registers\n"

        ".macro original name, seen, loads:vararg\n"
        "    .balign 16\n"
        "    .globl \\name\n"
        "    .type \\name, @function\n"
        "\\name:\n"
        "    adrp x16, \\seen\n"
        "    add x16, x16, :lo12:\\seen\n"
        "    stp x0, x1, [x16]\n"
        "    stp x2, x3, [x16, #16]\n"
        "    stp x4, x5, [x16, #32]\n"
        "    stp x6, x7, [x16, #48]\n"
        "    ldr x17, [x16, #64]\n"
        "    add x17, x17, #1\n"
        "    str x17, [x16, #64]\n"
        "    \\loads\n"
        "    ret\n"
        "    .size \\name, . - \\name\n"
        ".endm\n"
        "    original original_with_result, original_seen, ldr x0, [x16, #72]\n"
        "    original original_without_result, original_seen, nop\n"
        "    original nothrow_form, nothrow_seen, ldr x0, [x16, #72]\n");
