// SPDX-License-Identifier: MIT
// jail: a program that defends itself, and allocates meanwhile. The arguments are ways:
// undumpable (PR_SET_DUMPABLE 0), memory (a seccomp filter that kills for mmap of executable memory
// and for mprotect), everything (a filter that kills for all but what the program itself needs).
#include "until_eof.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define AT(field)                  offsetof(struct seccomp_data, field)
#define LOAD(field)                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT(field))
#define IF(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise)
#define RETURN(action)             BPF_STMT(BPF_RET | BPF_K, action)

static void install(struct sock_filter *filter, unsigned short len)
{
    struct sock_fprog program = {.len = len, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        perror("seccomp");
        exit(3);
    }
}

static void protect_memory(void)
{
    struct sock_filter filter[] = {
        LOAD(nr),
        IF(SYS_mprotect, 3, 0),
        IF(SYS_mmap, 0, 3),
        LOAD(args[2]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        RETURN(SECCOMP_RET_ALLOW),
    };
    install(filter, sizeof(filter) / sizeof(filter[0]));
}

static void protect_all(void)
{
    static const int allowed[] = {
        SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_futex, SYS_rt_sigreturn, SYS_brk,
        SYS_clock_nanosleep, SYS_restart_syscall, SYS_newfstatat, SYS_rt_sigprocmask, SYS_madvise,
        // of the other thread, which may still be starting
        SYS_set_robust_list, SYS_rseq};
    enum {
        COUNT = sizeof(allowed) / sizeof(allowed[0])
    };
    struct sock_filter filter[COUNT + 3] = {LOAD(nr)};
    for (unsigned char i = 0; i < COUNT; i++) {
        filter[i + 1] = (struct sock_filter)IF((unsigned)allowed[i], (unsigned char)(COUNT - i), 0);
    }
    filter[COUNT + 1] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
    filter[COUNT + 2] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    install(filter, COUNT + 3);
}

int main(int argc, char **argv)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    begin();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "undumpable") == 0) {
            prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        } else if (strcmp(argv[i], "memory") == 0) {
            protect_memory();
        } else if (strcmp(argv[i], "everything") == 0) {
            protect_all();
        }
    }
    (void)!write(1, "jailed\n", 7);
    while (!g_is_over) {
        unsigned char *block = malloc(100);
        memset(block, 5, 100);
        nanosleep(&pause, NULL);
        if (block[99] != 5) {
            fail("a block has changed");
        }
        free(block);
        g_checks++;
    }
    return verdict();
}
