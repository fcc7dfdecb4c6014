// SPDX-License-Identifier: MIT
// TRUTH: stacks=8192
//
// sleeper THREADS: each thread allocates a block and keeps it, and all sleep in one call. The main
// thread executes the bytes that it reads, and says "done" after each: `a` allocates a block, `t`
// touches 64 MiB that it has allocated at the beginning, `c` installs a seccomp filter that kills
// for futex(2), `s` allocates a block at each of `stacks` stacks, `q` ends.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LARGE_BYTES = 64 << 20,
    STACKS_BITS = 13,
};

static volatile unsigned g_steps;

// Allocate at the stack that has this number.
__attribute__((noinline)) static void allocate_at(unsigned number, int bits)
{
    if (bits == 0) {
        void *volatile block = malloc(10);
        (void)block;
    } else if ((number & 1) != 0) {
        allocate_at(number >> 1, bits - 1);
        g_steps += 1;
    } else {
        allocate_at(number >> 1, bits - 1);
        g_steps += 2;
    }
}

static void *sleep_on(void *argument)
{
    void *volatile block = malloc(100);
    for (;;) {
        pause();
    }
    free(block);
    return argument;
}

static int confine(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

int main(int argc, char **argv)
{
    char *large = malloc(LARGE_BYTES);
    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, sleep_on, NULL) != 0) {
            return 2;
        }
    }
    char command = 'b';
    do {
        if (command == 'a') {
            void *volatile block = malloc(1000);
            (void)block;
        } else if (command == 's') {
            for (unsigned number = 0; number < 1u << STACKS_BITS; number++) {
                allocate_at(number, STACKS_BITS);
            }
        } else if (command == 't') {
            memset(large, 1, LARGE_BYTES);
        } else if (command == 'c' && confine()) {
            return 3;
        }
        if (write(STDOUT_FILENO, "done\n", 5) != 5) {
            return 2;
        }
    } while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q');
    return 0;
}
