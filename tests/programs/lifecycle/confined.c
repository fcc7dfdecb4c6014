// SPDX-License-Identifier: MIT
// TRUTH: allocations=301 frees=101 allocated_bytes=75136 temporary=101 peak_bytes=65536
// TRUTH: live_bytes=6400 live_blocks=200
//
// Gives up its rights while it runs: its root directory and its user id if it is root, then every
// system call except read, write and exit (strict seccomp). It allocates in between and at the end,
// from memory that it has touched before. A hook that makes a system call would kill it.
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int work(void)
{
    for (int i = 0; i < 50; i++) {
        free(malloc(32));
        if (malloc(32) == NULL || malloc(32) == NULL) {
            return 0;
        }
    }
    return 1;
}

int main(void)
{
    free(malloc(65536));
    if (geteuid() == 0) {
        if (chroot("/proc") != 0 || chdir("/") != 0 || setgid(65534) != 0 || setuid(65534) != 0) {
            return 1;
        }
    }
    if (!work()) {
        return 2;
    }
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
        return 3;
    }
    const long status = work() ? 0 : 4;
    (void)!write(STDOUT_FILENO, "confined\n", 9);
    syscall(SYS_exit, status);
    return 5;
}
