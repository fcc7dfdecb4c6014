// SPDX-License-Identifier: MIT
// hook_steps: a signal handler that allocates and frees interrupts a hook after any of its
// instructions, by the processor's trap flag (x86-64).
//
//   hook_steps HOOK FIRST LAST GAP_FIRST GAP_LAST GAP_STEP [t|x|g]
//
// HOOK is 0 (malloc), 1 (calloc), 2 (realloc), 3 (free of a new block) or 4 (of an old one). The
// handler runs after instruction number FIRST, FIRST + 1 and so on to LAST or to the hook's last
// one, and in the same call a second time, each gap later (none: 0 0 1). An instruction counts if
// it is not libc's: libc's allocator cannot be interrupted by its user. t: another thread has
// allocated before. x: the handler ends the process after its second time.
// g: another thread frees what the handler keeps, before the handler returns.
//
// Prints how often main allocated and freed (call_*), and how often the handler did (handle_*). The
// handler begins by freeing the block that it kept the last time.
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100L

enum {
    HOOKS = 5,
    LIBC_PARTS = 2
};

static struct {
    uintptr_t start, end;
} g_libc[LIBC_PARTS]; // and its loader

static int g_hook;              // that is interrupted
static bool g_exits;            // in the handler
static _Atomic(void *) g_given; // to the other thread
static bool g_gives;
static unsigned g_step;      // of this call
static unsigned g_first;     // instruction
static unsigned g_second;    // the same: none
static unsigned g_last_step; // of the longest call
static void *g_kept;         // by the handler
static void *g_old;          // by main
static unsigned long g_calls[2];
static unsigned long g_handled[2];

static int find_libc(struct dl_phdr_info *module, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    const int part = strstr(module->dlpi_name, "/libc.so") != NULL    ? 0
                     : strstr(module->dlpi_name, "/ld-linux") != NULL ? 1
                                                                      : LIBC_PARTS;
    for (int i = 0; i < module->dlpi_phnum && part < LIBC_PARTS; i++) {
        const ElfW(Phdr) *header = &module->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && (header->p_flags & PF_X) != 0) {
            g_libc[part].start = module->dlpi_addr + header->p_vaddr;
            g_libc[part].end = g_libc[part].start + header->p_memsz;
        }
    }
    return 0;
}

static bool is_libc(uintptr_t address)
{
    for (int i = 0; i < LIBC_PARTS; i++) {
        if (address >= g_libc[i].start && address < g_libc[i].end) {
            return true;
        }
    }
    return false;
}

__attribute__((noinline)) void *handle_malloc(size_t size)
{
    g_handled[0]++;
    return malloc(size);
}

__attribute__((noinline)) void handle_free(void *block)
{
    g_handled[1] += block != NULL;
    free(block);
}

static void handle(void)
{
    handle_free(g_kept);
    g_kept = handle_malloc(24);
    handle_free(handle_malloc(40));
    if (g_gives) {
        g_handled[1]++;
        g_given = g_kept;
        g_kept = NULL;
        while (g_given != NULL) {
        }
    }
}

static void print_counts(void)
{
    printf("%lu %lu %lu %lu\n", g_calls[0], g_calls[1], g_handled[0], g_handled[1]);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    ucontext_t *where = context;
    (void)number;
    (void)info;
    if (is_libc((uintptr_t)where->uc_mcontext.gregs[REG_RIP])) {
        return;
    }
    const unsigned step = g_step++;
    if (step == g_first || step == g_second) {
        handle();
    }
    if (step == g_second && g_exits) {
        print_counts();
        exit(0);
    }
    if (step >= g_first && step >= g_second) {
        where->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    }
}

static void set_trap_flag(int hook)
{
    if (hook == g_hook) {
        __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
                         "leaq 128(%%rsp), %%rsp" ::
                             : "memory", "cc");
    }
}

static void clear_trap_flag(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\tandq $-0x101, (%%rsp)\n\tpopfq\n\t"
                     "leaq 128(%%rsp), %%rsp" ::
                         : "memory", "cc");
}

__attribute__((noinline)) void *call_malloc(void)
{
    g_calls[0]++;
    set_trap_flag(0);
    void *block = malloc(24);
    clear_trap_flag();
    return block;
}

__attribute__((noinline)) void *call_calloc(void)
{
    g_calls[0]++;
    set_trap_flag(1);
    void *block = calloc(1, 300);
    clear_trap_flag();
    return block;
}

__attribute__((noinline)) void *call_realloc(void *block)
{
    g_calls[0]++;
    g_calls[1]++;
    set_trap_flag(2);
    block = realloc(block, 5000);
    clear_trap_flag();
    return block;
}

__attribute__((noinline)) void call_free(int hook, void *block)
{
    g_calls[1] += block != NULL;
    set_trap_flag(hook);
    free(block);
    clear_trap_flag();
}

static void call_hooks(void)
{
    g_step = 0;
    void *block = call_malloc();
    void *other = call_calloc();
    block = call_realloc(block);
    call_free(3, other);
    call_free(4, g_old);
    g_old = block;
}

static void *allocate_once(void *unused)
{
    (void)unused;
    free(malloc(10));
    return NULL;
}

static void *free_given(void *unused)
{
    for (;;) {
        void *given = g_given;
        if (given != NULL) {
            free(given);
            free(malloc(24)); // at the same address
            g_given = NULL;
        }
    }
    return unused;
}

static void let_another_thread_free(void)
{
    pthread_t thread;
    g_gives = true;
    if (pthread_create(&thread, NULL, free_given, NULL) != 0) {
        abort();
    }
}

static void let_another_thread_allocate(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate_once, NULL) != 0) {
        abort();
    }
    (void)pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    if (argc < 7) {
        return 2;
    }
    const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    const unsigned first = (unsigned)atoi(argv[2]), last = (unsigned)atoi(argv[3]);
    const unsigned gap_first = (unsigned)atoi(argv[4]), gap_last = (unsigned)atoi(argv[5]);
    const unsigned gap_step = (unsigned)atoi(argv[6]);
    g_exits = argc > 7 && argv[7][0] == 'x';
    if (argc > 7 && argv[7][0] == 't') {
        let_another_thread_allocate();
    }
    if (argc > 7 && argv[7][0] == 'g') {
        let_another_thread_free();
    }
    g_hook = HOOKS; // none: the stacks are new, and lanes may be opened with signals blocked
    call_hooks();
    (void)dl_iterate_phdr(find_libc, NULL);
    (void)sigaction(SIGTRAP, &action, NULL);
    g_hook = atoi(argv[1]);
    g_last_step = first;
    for (g_first = first; g_first <= last && g_first <= g_last_step + 1; g_first++) {
        for (unsigned gap = gap_first; gap <= gap_last; gap += gap_step) {
            g_second = g_first + gap;
            call_hooks();
            g_last_step = g_step > g_last_step ? g_step : g_last_step;
        }
    }
    g_hook = HOOKS;
    call_free(HOOKS + 1, g_old);
    handle_free(g_kept);
    print_counts();
    return 0;
}
