// SPDX-License-Identifier: MIT
// coroutines: stacks that change between walks and share parts with other stacks. Each coroutine
// allocates at every level of a recursion and switches to the next in between: by assembly without
// tables (like boost.context), by assembly with tables, and by swapcontext(). Their stacks are
// separate ones, which are unmapped and mapped again at the same place, or inside main's own frame.
//
// TRUTH: allocations=7680 frees=7680 allocated_bytes=528000 live_bytes=0 live_blocks=0
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "context_switch.h"

enum {
    COROUTINES = 4,
    ROUNDS = 16, // all coroutines start again in each
    LEVELS = 10, // of each recursion
    STACK_BYTES = 65536,
    WAYS = 3,
    PLACES = 2,
};

struct coroutine {
    void *sp;
    ucontext_t context;
    unsigned number;
    int is_over;
};

static struct coroutine g_all[COROUTINES];
static struct coroutine g_main;
static int g_way;

static void switch_between(struct coroutine *from, struct coroutine *to)
{
    if (g_way == 0) {
        switch_plain(&from->sp, to->sp);
    } else if (g_way == 1) {
        switch_described(&from->sp, to->sp);
    } else if (swapcontext(&from->context, &to->context) != 0) {
        abort();
    }
}

// Two blocks per level: one lives while another coroutine runs, one while the deeper levels do.
__attribute__((noinline)) static size_t descend(struct coroutine *self, unsigned level)
{
    char *volatile brief = malloc(16 * level);
    char *volatile deep = malloc(48 + self->number);
    size_t sum = (size_t)(brief != NULL) + (size_t)(deep != NULL);
    switch_between(self, &g_main);
    free(brief);
    if (level > 1) {
        sum += descend(self, level - 1);
    }
    switch_between(self, &g_main);
    free(deep);
    return sum;
}

static void run(void *argument)
{
    struct coroutine *self = argument;
    if (descend(self, LEVELS) != (size_t)LEVELS * 2) {
        abort();
    }
    self->is_over = 1;
    switch_between(self, &g_main);
    abort();
}

static void run_by_number(int number)
{
    run(&g_all[number]);
}

static void begin(struct coroutine *c, unsigned number, char *stack)
{
    c->number = number;
    c->is_over = 0;
    if (g_way < 2) {
        c->sp = context_begin(stack + STACK_BYTES, run, c);
        return;
    }
    if (getcontext(&c->context) != 0) {
        abort();
    }
    c->context.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_BYTES};
    makecontext(&c->context, (void (*)(void))run_by_number, 1, (int)number);
}

// Run all in turn until the last one ends. They end at the same time, in different orders.
static void run_round(char *stacks, unsigned round)
{
    unsigned over = 0;
    for (unsigned i = 0; i < COROUTINES; i++) {
        begin(&g_all[i], i, stacks + (size_t)i * STACK_BYTES);
    }
    for (unsigned turn = 0; over < COROUTINES; turn++) {
        struct coroutine *next = &g_all[(turn * 3 + round) % COROUTINES];
        if (!next->is_over) {
            switch_between(&g_main, next);
            over += (unsigned)next->is_over;
        }
    }
}

__attribute__((noinline)) static void on_stacks_of_their_own(unsigned round)
{
    static char *place;
    const size_t size = (size_t)COROUTINES * STACK_BYTES;
    char *stacks = mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stacks == MAP_FAILED || (place != NULL && stacks != place)) {
        abort();
    }
    place = stacks;
    run_round(stacks, round);
    if (munmap(stacks, size) != 0) {
        abort();
    }
}

__attribute__((noinline)) static void on_stacks_inside_this_frame(unsigned round)
{
    _Alignas(16) char stacks[COROUTINES * STACK_BYTES];
    run_round(stacks, round);
}

int main(void)
{
    for (g_way = 0; g_way < WAYS; g_way++) {
        for (unsigned round = 0; round < ROUNDS; round++) {
            on_stacks_of_their_own(round);
            on_stacks_inside_this_frame(round);
        }
    }
    return 0;
}
