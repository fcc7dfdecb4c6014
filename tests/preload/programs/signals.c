// SPDX-License-Identifier: MIT
// signals: handlers that allocate while they interrupt hooks.
//
// A handler that calls malloc may interrupt malloc, which glibc's does not survive. So this program
// is run with safe_allocator.c preloaded behind cairn's library, as the next in line: every
// instruction of a hook may then be interrupted.
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    ALTERNATE_BYTES = 65536
};

static volatile sig_atomic_t handler_pairs;
static sigjmp_buf escape;
static volatile sig_atomic_t escapes;
static volatile sig_atomic_t may_escape;
static volatile size_t completed; // allocations that returned

// What one run of a handler may do is bounded, so that its number, not the load of the machine,
// decides what is to be kept: a timer strikes once and is set again by whoever was interrupted, or
// by the handler up to `strikes_max` times in a row.
static timer_t one_shot;
static int rounds_of_handler = 1;
static int strikes_max = 4;
static volatile sig_atomic_t strikes;

static void strike_soon(void)
{
    static uint32_t random = 1;
    random = random * 1664525u + 1013904223u;
    const struct itimerspec once = {.it_value = {.tv_nsec = 1000 + (random >> 8) % 50000}};
    timer_settime(one_shot, 0, &once, NULL);
}

static void allocate_in_handler(int signal)
{
    (void)signal;
    const int saved = errno;
    for (int i = 0; i < rounds_of_handler; i++) {
        free(malloc(2000));
        void *grown = realloc(malloc(2001), 2002);
        free(grown);
        handler_pairs++;
    }
    if (++strikes < strikes_max) {
        strike_soon();
    }
    errno = saved;
}

static void leave_by_jump(int signal)
{
    (void)signal;
    if (may_escape) {
        may_escape = 0;
        siglongjmp(escape, 1);
    }
}

static timer_t make_timer(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    return timer;
}

static timer_t start_timer(long interval_us)
{
    const timer_t timer = make_timer();
    const struct itimerspec each = {.it_interval = {.tv_nsec = interval_us * 1000},
                                    .it_value = {.tv_nsec = interval_us * 1000}};
    timer_settime(timer, 0, &each, NULL);
    return timer;
}

static void handle(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | flags};
    sigaction(SIGALRM, &action, NULL);
}

static void use_alternate_stack(char *stack)
{
    const stack_t alternate = {.ss_sp = stack, .ss_size = ALTERNATE_BYTES};
    sigaltstack(&alternate, NULL);
}

// Until handlers have allocated `wanted` times.
static int storm(int flags, int wanted)
{
    handle(allocate_in_handler, flags);
    one_shot = make_timer();
    strikes = strikes_max; // as if the last series were over
    size_t pairs = 0;
    while (handler_pairs < wanted) {
        if (strikes == strikes_max) {
            strikes = 0;
            strike_soon();
        }
        free(malloc(1000 + pairs % 7));
        pairs++;
    }
    timer_delete(one_shot);
    signal(SIGALRM, SIG_IGN);
    dprintf(1, "%zu %d\n", pairs, (int)handler_pairs);
    return 0;
}

// Leaves hooks half way, again and again. After each escape, events count as ever.
static int escapes_from_hooks(void)
{
    handle(leave_by_jump, 0);
    const timer_t timer = start_timer(40);
    while (escapes < 500) {
        if (sigsetjmp(escape, 1) != 0) {
            escapes++;
            continue;
        }
        may_escape = 1;
        for (;;) {
            void *block = malloc(3000);
            completed++;
            free(block);
        }
    }
    timer_delete(timer);
    signal(SIGALRM, SIG_IGN);
    for (size_t i = 0; i < 100; i++) {
        free(malloc(4000 + i));
    }
    char line[32]; // dprintf allocates
    const int length = snprintf(line, sizeof(line), "%zu\n", completed);
    return write(1, line, (size_t)length) == length ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        return 2;
    }
    if (strcmp(argv[1], "escape") == 0) {
        return escapes_from_hooks();
    }
    if (strcmp(argv[1], "flood") == 0 && argc == 3) {
        rounds_of_handler = 40; // more than what is kept
        strikes_max = 1;
        return storm(0, atoi(argv[2]));
    }
    static char below[ALTERNATE_BYTES];
    char above[ALTERNATE_BYTES]; // further out than all that is interrupted
    if (strcmp(argv[1], "same") == 0) {
        return storm(0, 2000);
    }
    use_alternate_stack(strcmp(argv[1], "above") == 0 ? above : below);
    return storm(SA_ONSTACK, 2000);
}
