// SPDX-License-Identifier: MIT
// TRUTH(before): allocations=301 frees=301 thread_blocks=1
// TRUTH(after): allocations=301 frees=301 thread_blocks=1
//
// The main thread gives up every system call except read, write and exit (strict seccomp), and
// allocates before and after that. Another thread allocates before it, or, with `after`, only when
// the first one is confined. Under strict seccomp an instruction that reads the processor's clock
// is a SIGSEGV.
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int g_go_on[2]; // to the other thread
static int g_done[2];  // back

static void allocate(int count)
{
    for (int i = 0; i < count; i++) {
        free(malloc(32));
    }
}

static void tell(const int *ends)
{
    const char byte = 0;
    (void)!write(ends[1], &byte, 1);
}

static void await(const int *ends)
{
    char byte;
    (void)!read(ends[0], &byte, 1);
}

static void *work(void *argument)
{
    await(g_go_on);
    allocate(100);
    tell(g_done);
    await(g_go_on);
    _exit(0);
    return argument;
}

static void let_the_other_allocate(void)
{
    tell(g_go_on);
    await(g_done);
}

int main(int argc, char **argv)
{
    const int is_after = argc > 1 && strcmp(argv[1], "after") == 0;
    pthread_t other;
    free(malloc(65536));
    if (pipe(g_go_on) != 0 || pipe(g_done) != 0 || pthread_create(&other, NULL, work, NULL) != 0) {
        return 1;
    }
    if (!is_after) {
        let_the_other_allocate();
    }
    allocate(100);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
        return 3;
    }
    if (is_after) {
        let_the_other_allocate();
    }
    allocate(100);
    (void)!write(STDOUT_FILENO, "confined\n", 9);
    tell(g_go_on);
    syscall(SYS_exit, 0);
    return 5;
}
