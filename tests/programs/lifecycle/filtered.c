// SPDX-License-Identifier: MIT
// TRUTH: allocations=120002 frees=120001
//
// Installs a seccomp filter that kills it for any call except those of libc's malloc. Then it
// allocates until the ring of its lane has been full many times, at ten times the earlier stack
// depth. The first argument names the way: "prctl", "seccomp" (by syscall()); "strict" allows only
// read, write and exit. With "fork" or "thread" children start under the filter, which allows the
// calls for that; each allocates and frees 1000 blocks.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const int allowed[] = {
    SYS_read,         SYS_write,           SYS_exit,
    SYS_exit_group,   SYS_rt_sigreturn,    SYS_brk,
    SYS_mmap,         SYS_munmap,          SYS_mremap,
    SYS_madvise,      SYS_mprotect,        SYS_futex,
    SYS_clone,        SYS_clone3,          SYS_wait4,
    SYS_rseq,         SYS_set_robust_list, SYS_rt_sigprocmask,
    SYS_rt_sigaction,
};
#define MALLOC_ALONE 11 // without futex and the calls of children

static int filter(int count, int by_syscall)
{
    struct sock_filter code[64] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    int used = 1;
    for (int i = 0; i < count; i++) {
        code[used++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {.len = (unsigned short)used, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    return by_syscall ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                      : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

// Hold `count` blocks at one time.
static void hold(int count)
{
    void **last = NULL;
    for (int i = 0; i < count; i++) {
        void **block = malloc(16 + (size_t)(i & 127));
        *block = last;
        last = block;
    }
    while (last != NULL) {
        void **next = *last;
        free(last);
        last = next;
    }
}

static void deep_hold(int depth, int count)
{
    volatile char frame[200];
    frame[0] = (char)depth;
    if (depth > 0) {
        deep_hold(depth - 1, count);
    } else {
        hold(count);
    }
    frame[1] = frame[0];
}

static void *hold_in_thread(void *unused)
{
    hold(1000);
    return unused;
}

static int begin_others(int is_fork)
{
    if (!is_fork) {
        pthread_t thread;
        return pthread_create(&thread, NULL, hold_in_thread, NULL) != 0 ||
               pthread_join(thread, NULL) != 0;
    }
    const pid_t child = fork();
    if (child == 0) {
        hold(1000);
        _exit(7);
    }
    int status = 0;
    return waitpid(child, &status, 0) != child || status != 7 << 8;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const int has_others = strcmp(how, "fork") == 0 || strcmp(how, "thread") == 0;
    deep_hold(20, 60000); // strict: allocates its later memory now
    free(malloc(100));
    int result;
    if (strcmp(how, "strict") == 0) {
        result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    } else {
        result = filter(has_others ? (int)(sizeof(allowed) / sizeof(allowed[0])) : MALLOC_ALONE,
                        strcmp(how, "seccomp") == 0);
    }
    if (result != 0 || (has_others && begin_others(strcmp(how, "fork") == 0) != 0)) {
        return 2;
    }
    deep_hold(200, 60000);
    static const char done[] = "done\n";
    if (malloc(10) == NULL || write(1, done, sizeof(done) - 1) != (ssize_t)sizeof(done) - 1) {
        return 3;
    }
    syscall(SYS_exit, 0); // the only call that strict allows
    return 4;
}
