// SPDX-License-Identifier: MIT
// TRUTH: allocations=301 frees=201 allocated_bytes=15560 temporary=100 peak_bytes=5560
// TRUTH: live_bytes=5000 live_blocks=100
//
// A handler on an alternate stack that allocates and frees, raised between the allocations of main.
#include <signal.h>
#include <stdlib.h>

static void *g_kept[100];
static volatile sig_atomic_t g_runs;

static void handler(int number)
{
    (void)number;
    g_kept[g_runs] = malloc(50);
    g_runs = g_runs + 1;
}

int main(void)
{
    static char stack[64 << 10];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&alternate, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0) {
        return 1;
    }
    void *around = malloc(460);
    for (int i = 0; i < 100; i++) {
        void *held = malloc(100);
        raise(SIGUSR1);
        free(held);
        void *temporary = malloc(1);
        free(temporary);
    }
    free(around);
    return g_runs == 100 ? 0 : 2;
}
