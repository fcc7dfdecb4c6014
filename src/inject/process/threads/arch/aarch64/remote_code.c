// SPDX-License-Identifier: MIT
// remote_code (AArch64): see remote_code.h.
//
// x7 is never used: while a thread is stopped at a system call, the kernel has a mark there and
// ignores what a tracer writes (arch/arm64/kernel/ptrace.c, report_syscall).
#include "inject/process/threads/remote_code.h"

#include <string.h>

#include "base/bytes.h"

#define B       0x14000000u
#define B_WORDS 0x2000000 // how far it reaches

// In the order of the constants behind the code.
enum {
    CONSTANT_CALLS,
    CONSTANT_RESULTS,
    CONSTANT_DONE,
    CONSTANT_COUNT,
    CONSTANT_X0,                   // to x5
    CONSTANT_X8 = CONSTANT_X0 + 6, // to x12
    CONSTANT_COUNT_OF_ALL = CONSTANT_X8 + 5,
};

// x9: the call, x10: its result, x11: calls left. The word at remote_code_jump becomes a branch.
__asm__(".pushsection .rodata\n"
        ".balign 8\n"
        "remote_code_begin:\n"
        "    ldr x9, remote_constants + 8*0\n"
        "    ldr x10, remote_constants + 8*1\n"
        "    ldr x11, remote_constants + 8*3\n"
        "1:  cbz x11, 4f\n"
        "    sub x11, x11, #1\n"
        "    ldp x8, x0, [x9]\n"
        "    ldp x1, x2, [x9, #16]\n"
        "    ldp x3, x4, [x9, #32]\n"
        "    ldr x5, [x9, #48]\n"
        "    svc #0\n"
        "    ldr x12, [x9, #56]\n"
        "    cbz x12, 2f\n"
        "    add x12, x12, x0\n"
        "    cbnz x12, 5f\n"
        "2:  str x0, [x10], #8\n"
        "    add x9, x9, #64\n"
        "    b 1b\n"
        "4:  ldr x9, remote_constants + 8*2\n"
        "    mov x10, #1\n"
        "    stlr x10, [x9]\n" // the results are there when it is
        "5:  ldr x0, remote_constants + 8*4\n"
        "    ldr x1, remote_constants + 8*5\n"
        "    ldr x2, remote_constants + 8*6\n"
        "    ldr x3, remote_constants + 8*7\n"
        "    ldr x4, remote_constants + 8*8\n"
        "    ldr x5, remote_constants + 8*9\n"
        "    ldr x8, remote_constants + 8*10\n"
        "    ldr x9, remote_constants + 8*11\n"
        "    ldr x10, remote_constants + 8*12\n"
        "    ldr x11, remote_constants + 8*13\n"
        "    ldr x12, remote_constants + 8*14\n"
        "remote_code_jump:\n"
        "    udf #0\n"
        ".balign 8\n"
        "remote_constants:\n"
        ".popsection\n");

extern const uint8_t remote_code_begin[] __attribute__((visibility("hidden")));
extern const uint8_t remote_code_jump[] __attribute__((visibility("hidden")));
extern const uint8_t remote_constants[] __attribute__((visibility("hidden")));

bool remote_code_reaches(uint64_t addr, uint64_t pc)
{
    const int64_t words = (int64_t)(pc - addr) / 4;
    return words > -B_WORDS + REMOTE_CODE_BYTES_MAX && words < B_WORDS - REMOTE_CODE_BYTES_MAX;
}

size_t remote_code_write(const struct remote_code_run *run, uint8_t out[REMOTE_CODE_BYTES_MAX])
{
    const unsigned long long *regs = run->regs->regs;
    uint64_t constants[CONSTANT_COUNT_OF_ALL] = {
        [CONSTANT_CALLS] = run->calls,
        [CONSTANT_RESULTS] = run->results,
        [CONSTANT_DONE] = run->done,
        [CONSTANT_COUNT] = run->count,
    };
    memcpy(constants + CONSTANT_X0, regs, 6 * sizeof(*constants));
    memcpy(constants + CONSTANT_X8, regs + 8, 5 * sizeof(*constants));
    const size_t code_len = (size_t)(remote_constants - remote_code_begin);
    const size_t jump_at = (size_t)(remote_code_jump - remote_code_begin);
    _Static_assert(sizeof(constants) <= REMOTE_CODE_BYTES_MAX / 2, "room for the code too");
    memcpy(out, remote_code_begin, code_len);
    const int64_t words = (int64_t)(run->regs->pc - (run->addr + jump_at)) / 4;
    put_u32(out + jump_at, B | ((uint32_t)words & 0x03ffffffu));
    memcpy(out + code_len, constants, sizeof(constants));
    return code_len + sizeof(constants);
}

bool remote_code_is_at(const struct target_process *target, uint64_t addr)
{
    uint8_t bytes[REMOTE_CODE_BYTES_MAX];
    const size_t len = (size_t)(remote_code_jump - remote_code_begin);
    return target_process_read(target, addr, bytes, len) == ERR_OK &&
           memcmp(bytes, remote_code_begin, len) == 0;
}
