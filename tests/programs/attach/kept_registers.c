// SPDX-License-Identifier: MIT
// kept_registers: callers that rely on every register that their allocator leaves alone, as gcc's
// do with -fipa-ra. Executes the commands that it reads, one per line, and writes "done" after
// each.
//
//   r   a round: 1000 calls of own_malloc(48) and of own_free, with all registers checked: those of
//       the first function may change only rax, those of the second none
//   p   nothing
//   q   returns from main, with status 1 if a register has changed
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum {
    CALLS = 1000,
    GENERAL = 14, // all but rax and rsp
    VECTORS = 16,
};

struct registers {
    uint64_t general[GENERAL];
    uint64_t rax;
    uint64_t vectors[VECTORS][2];
};

static _Alignas(64) unsigned char pool[64 << 20] __attribute__((used));
unsigned char *next_block = pool;

// The allocator's only change is rax. Its functions have names that cairn knows, too. The function
// that it calls writes every register that the ABI lets it change, and restores them by mov.
__asm__("restores_by_mov:\n"
        "    .set at, 8\n"
        "    .irp reg, rcx, rdx, rsi, rdi, r8, r9, r10, r11\n"
        "        movq %\\reg, -at(%rsp)\n"
        "        movq $-1, %\\reg\n"
        "        .set at, at + 8\n"
        "    .endr\n"
        "    movq $-1, %rax\n"
        "    .set at, 8\n"
        "    .irp reg, rcx, rdx, rsi, rdi, r8, r9, r10, r11\n"
        "        movq -at(%rsp), %\\reg\n"
        "        .set at, at + 8\n"
        "    .endr\n"
        "    ret\n"
        ".globl own_malloc, je_malloc\n"
        ".type own_malloc, @function\n"
        ".type je_malloc, @function\n"
        "own_malloc:\n"
        "je_malloc:\n"
        "    cmpq $0, next_block(%rip)\n"
        "    call restores_by_mov\n"
        "    movq next_block(%rip), %rax\n"
        "    addq $64, next_block(%rip)\n"
        "    ret\n"
        ".size own_malloc, . - own_malloc\n"
        ".size je_malloc, . - je_malloc\n"
        ".balign 16\n"
        ".globl own_free, je_free\n"
        ".type own_free, @function\n"
        ".type je_free, @function\n"
        "own_free:\n"
        "je_free:\n"
        "    movb $1, (%rdi)\n"
        "    nop\n"
        "    nop\n"
        "    ret\n"
        ".size own_free, . - own_free\n"
        ".size je_free, . - je_free\n");

// Sets all registers from the first argument, calls the function at `rax` there, and stores them.
void call_with(struct registers *registers);
__asm__(".macro each_general operation\n"
        "    .set at, 0\n"
        "    .irp reg, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14\n"
        "        .ifc \\operation, load\n"
        "            movq at(%r15), %\\reg\n"
        "        .else\n"
        "            movq %\\reg, at(%r15)\n"
        "        .endif\n"
        "        .set at, at + 8\n"
        "    .endr\n"
        "    .set at, 120\n"
        "    .irp reg, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "        .ifc \\operation, load\n"
        "            movups at(%r15), %xmm\\reg\n"
        "        .else\n"
        "            movups %xmm\\reg, at(%r15)\n"
        "        .endif\n"
        "        .set at, at + 16\n"
        "    .endr\n"
        ".endm\n"
        ".globl call_with\n"
        "call_with:\n"
        "    .irp reg, rbx, rbp, r12, r13, r14, r15, r15\n"
        "        pushq %\\reg\n"
        "    .endr\n"
        "    movq %rdi, %r15\n" // is checked by the stores through it
        "    each_general load\n"
        "    movq 112(%r15), %rax\n"
        "    call *%rax\n"
        "    each_general store\n"
        "    movq %rax, 112(%r15)\n"
        "    .irp reg, r15, r15, r14, r13, r12, rbp, rbx\n"
        "        popq %\\reg\n"
        "    .endr\n"
        "    ret\n");

void *own_malloc(uint64_t size);
void own_free(void *block);

static int changes; // of registers

// Returns rax.
static uint64_t check_call(void (*function)(void), uint64_t argument)
{
    static uint64_t value = 0x0123456789abcdef;
    struct registers before;
    for (size_t i = 0; i < sizeof(before) / sizeof(uint64_t); i++) {
        value = value * 0x5851f42d4c957f2d + 1;
        memcpy((char *)&before + i * sizeof(value), &value, sizeof(value));
    }
    before.general[4] = argument;
    before.general[13] = 0; // r15, which is not stored
    before.rax = (uint64_t)function;
    struct registers after = before;
    call_with(&after);
    changes += memcmp(before.general, after.general, sizeof(before.general)) != 0;
    changes += memcmp(before.vectors, after.vectors, sizeof(before.vectors)) != 0;
    return after.rax;
}

static void round_of_calls(void)
{
    for (int i = 0; i < CALLS; i++) {
        const uint64_t block = check_call((void (*)(void))own_malloc, 48);
        changes += block != (uint64_t)(next_block - 64);
        const uint64_t rax = check_call((void (*)(void))own_free, block);
        changes += rax != (uint64_t)(void (*)(void))own_free; // was there before
    }
}

int main(void)
{
    char command[2];
    while (read(0, command, 2) == 2 && command[0] != 'q') {
        if (command[0] == 'r') {
            round_of_calls();
        }
        if (write(1, "done\n", 5) != 5) {
            return 2;
        }
    }
    return changes != 0;
}
