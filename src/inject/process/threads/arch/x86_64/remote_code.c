// SPDX-License-Identifier: MIT
// remote_code (x86-64): see remote_code.h. Only moves, address computations, jrcxz and jumps.
#include "inject/process/threads/remote_code.h"

#include <string.h>

// In the order of the constants behind the code.
enum {
    CONSTANT_CALLS,
    CONSTANT_RESULTS,
    CONSTANT_DONE,
    CONSTANT_COUNT,
    CONSTANT_RAX,
    CONSTANT_RBX,
    CONSTANT_RCX,
    CONSTANT_RDX,
    CONSTANT_RSI,
    CONSTANT_RDI,
    CONSTANT_R8,
    CONSTANT_R9,
    CONSTANT_R10,
    CONSTANT_R11,
    CONSTANT_R12,
    CONSTANT_R13,
    CONSTANT_RIP,
    CONSTANT_COUNT_OF_ALL,
};

// rbx: the call, r12: its result, r13: calls left.
__asm__(".pushsection .rodata\n"
        ".balign 8\n"
        "remote_code_begin:\n"
        "    movq remote_constants + 8*0(%rip), %rbx\n"
        "    movq remote_constants + 8*1(%rip), %r12\n"
        "    movq remote_constants + 8*3(%rip), %r13\n"
        "1:  movq %r13, %rcx\n"
        "    jrcxz 4f\n"
        "    leaq -1(%r13), %r13\n"
        "    movq (%rbx), %rax\n"
        "    movq 8(%rbx), %rdi\n"
        "    movq 16(%rbx), %rsi\n"
        "    movq 24(%rbx), %rdx\n"
        "    movq 32(%rbx), %r10\n"
        "    movq 40(%rbx), %r8\n"
        "    movq 48(%rbx), %r9\n"
        "    syscall\n"
        "    movq 56(%rbx), %rcx\n"
        "    jrcxz 2f\n"
        "    leaq (%rcx, %rax), %rcx\n"
        "    jrcxz 2f\n"
        "    jmp 5f\n"
        "2:  movq %rax, (%r12)\n"
        "    leaq 8(%r12), %r12\n"
        "    leaq 64(%rbx), %rbx\n"
        "    jmp 1b\n"
        "4:  movq remote_constants + 8*2(%rip), %rax\n"
        "    movl $1, %ecx\n"
        "    movq %rcx, (%rax)\n"
        "5:  movq remote_constants + 8*4(%rip), %rax\n"
        "    movq remote_constants + 8*5(%rip), %rbx\n"
        "    movq remote_constants + 8*6(%rip), %rcx\n"
        "    movq remote_constants + 8*7(%rip), %rdx\n"
        "    movq remote_constants + 8*8(%rip), %rsi\n"
        "    movq remote_constants + 8*9(%rip), %rdi\n"
        "    movq remote_constants + 8*10(%rip), %r8\n"
        "    movq remote_constants + 8*11(%rip), %r9\n"
        "    movq remote_constants + 8*12(%rip), %r10\n"
        "    movq remote_constants + 8*13(%rip), %r11\n"
        "    movq remote_constants + 8*14(%rip), %r12\n"
        "    movq remote_constants + 8*15(%rip), %r13\n"
        "    jmp *remote_constants + 8*16(%rip)\n"
        ".balign 8, 0xcc\n"
        "remote_constants:\n"
        ".popsection\n");

extern const uint8_t remote_code_begin[] __attribute__((visibility("hidden")));
extern const uint8_t remote_constants[] __attribute__((visibility("hidden")));

bool remote_code_reaches(uint64_t addr, uint64_t pc)
{
    (void)addr; // the jump is indirect
    (void)pc;
    return true;
}

size_t remote_code_write(const struct remote_code_run *run, uint8_t out[REMOTE_CODE_BYTES_MAX])
{
    const struct user_regs_struct *regs = run->regs;
    const uint64_t constants[CONSTANT_COUNT_OF_ALL] = {
        [CONSTANT_CALLS] = run->calls, [CONSTANT_RESULTS] = run->results,
        [CONSTANT_DONE] = run->done,   [CONSTANT_COUNT] = run->count,
        [CONSTANT_RAX] = regs->rax,    [CONSTANT_RBX] = regs->rbx,
        [CONSTANT_RCX] = regs->rcx,    [CONSTANT_RDX] = regs->rdx,
        [CONSTANT_RSI] = regs->rsi,    [CONSTANT_RDI] = regs->rdi,
        [CONSTANT_R8] = regs->r8,      [CONSTANT_R9] = regs->r9,
        [CONSTANT_R10] = regs->r10,    [CONSTANT_R11] = regs->r11,
        [CONSTANT_R12] = regs->r12,    [CONSTANT_R13] = regs->r13,
        [CONSTANT_RIP] = regs->rip,
    };
    const size_t code_len = (size_t)(remote_constants - remote_code_begin);
    _Static_assert(sizeof(constants) <= REMOTE_CODE_BYTES_MAX / 2, "room for the code too");
    memcpy(out, remote_code_begin, code_len);
    memcpy(out + code_len, constants, sizeof(constants));
    return code_len + sizeof(constants);
}

bool remote_code_is_at(const struct target_process *target, uint64_t addr)
{
    uint8_t bytes[REMOTE_CODE_BYTES_MAX];
    const size_t len = (size_t)(remote_constants - remote_code_begin);
    return target_process_read(target, addr, bytes, len) == ERR_OK &&
           memcmp(bytes, remote_code_begin, len) == 0;
}
