// SPDX-License-Identifier: MIT
// TRUTH: allocations=20001 allocated_bytes=2000100 frees=20001
//
// filtering later|before|thread: a program to attach to, with a seccomp filter that kills for all
// calls but those of malloc and its own. It waits for two lines. After the first it allocates and
// frees one block, and installs the filter, unless it has done so before, or another thread has,
// which then has it alone; after the second it holds 20000 blocks at one time and frees them. It
// waits in poll(), which the kernel continues by restart_syscall() after a stop, and that is a call
// that it may not make. Status 77: the kernel cannot.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    BLOCKS = 20000,
    BLOCK_BYTES = 100,
    STATUS_CANNOT = 77,
};

#if defined(SYS_poll)
#    define POLL SYS_poll
#else
#    define POLL SYS_ppoll
#endif

static const unsigned allowed[] = {SYS_read,   SYS_write, POLL,       SYS_exit_group, SYS_brk,
                                   SYS_munmap, SYS_mmap,  SYS_mremap, SYS_futex};

static int install_filter(void)
{
    struct sock_filter code[32] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short used = 1;
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
        code[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    const struct sock_fprog program = {.len = used, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
               ? -1
               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int await_line(void)
{
    char byte = 0;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (byte != '\n') {
        if (poll(&input, 1, 600000) != 1 || read(STDIN_FILENO, &byte, 1) != 1) {
            return -1;
        }
    }
    return 0;
}

static int say_done(void)
{
    return write(STDOUT_FILENO, "done\n", 5) == 5 ? 0 : -1;
}

static void *wait_filtered(void *barrier)
{
    const int result = install_filter();
    (void)pthread_barrier_wait(barrier);
    while (result == 0) {
        (void)poll(NULL, 0, 600000);
    }
    _exit(STATUS_CANNOT);
}

static int begin_thread(void)
{
    static pthread_barrier_t barrier;
    pthread_t thread;
    if (pthread_barrier_init(&barrier, NULL, 2) != 0 ||
        pthread_create(&thread, NULL, wait_filtered, &barrier) != 0) {
        return -1;
    }
    (void)pthread_barrier_wait(&barrier);
    return 0;
}

int main(int argc, char **argv)
{
    static void *blocks[BLOCKS];
    const int has_thread = argc > 1 && strcmp(argv[1], "thread") == 0;
    const int is_before = argc > 1 && strcmp(argv[1], "later") != 0;
    free(malloc(1)); // some calls are made once
    if (is_before && (has_thread ? begin_thread() : install_filter()) != 0) {
        return STATUS_CANNOT;
    }
    if (say_done() != 0 || await_line() != 0) {
        return 1;
    }
    free(malloc(BLOCK_BYTES));
    if (!is_before && install_filter() != 0) {
        return STATUS_CANNOT;
    }
    if (say_done() != 0 || await_line() != 0) {
        return 1;
    }
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK_BYTES);
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    _exit(say_done() == 0 ? 7 : 1);
}
