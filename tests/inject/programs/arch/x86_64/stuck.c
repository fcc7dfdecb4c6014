// SPDX-License-Identifier: MIT
// stuck: a handler interrupts malloc within its first bytes and stays there until the input has a
// line; then it returns into them. The processor's trap flag brings the handler there. Prints
// "stuck" when it is there, or "never" if malloc has no instruction that begins there.
#include "until_eof.h"

#include <signal.h>
#include <sys/ucontext.h>

enum {
    TRAP_FLAG = 0x100,
    PATCH_BYTES = 5
};

static _Atomic bool g_is_let_go;
static bool g_was_stuck;

static void on_trap(int signal, siginfo_t *info, void *context)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uintptr_t inside = (uintptr_t)registers[REG_RIP] - (uintptr_t)malloc;
    (void)signal;
    (void)info;
    if (inside > 0 && inside < PATCH_BYTES) {
        registers[REG_EFL] &= ~TRAP_FLAG;
        g_was_stuck = true;
        (void)!write(1, "stuck\n", 6);
        while (!g_is_let_go) {
            nanosleep(&pause, NULL);
        }
    }
}

static void *wait_for_line(void *argument)
{
    char byte;
    (void)argument;
    g_is_let_go = read(0, &byte, 1) == 1;
    while (read(0, &byte, 1) > 0) {
    }
    g_is_over = true;
    return NULL;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGTRAP, &action, NULL);
    (void)start(wait_for_line, NULL);
    void *volatile first = malloc(10); // resolves the function's address
    free(first);
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    unsigned char *block = malloc(1000);
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    memset(block, 9, 1000);
    g_checks++;
    (void)!write(1, g_was_stuck ? "returned\n" : "never\n", g_was_stuck ? 9 : 6);
    while (!g_is_over) {
        void *volatile other = malloc(20);
        free(other);
        g_checks++;
    }
    if (block[0] != 9 || block[999] != 9) {
        fail("the block has changed");
    }
    free(block);
    return verdict();
}
