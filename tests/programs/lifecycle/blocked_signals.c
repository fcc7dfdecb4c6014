// SPDX-License-Identifier: MIT
// TRUTH: allocations=2000 frees=1000 allocated_bytes=64000 temporary=1000 peak_bytes=32032
// TRUTH: live_bytes=32000 live_blocks=1000
//
// Blocks every signal before it allocates; afterwards all are blocked, and none is pending.
#include <signal.h>
#include <stdlib.h>

int main(void)
{
    sigset_t all;
    sigset_t now;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int i = 0; i < 1000; i++) {
        if (malloc(32) == NULL) {
            return 1;
        }
        free(malloc(32));
    }
    sigprocmask(SIG_SETMASK, NULL, &now);
    for (int number = 1; number < NSIG; number++) {
        const int can_be_blocked = number != SIGKILL && number != SIGSTOP;
        // glibc reserves the two real-time signals below SIGRTMIN.
        if (can_be_blocked && (number < 32 || number >= SIGRTMIN) && !sigismember(&now, number)) {
            return 2;
        }
    }
    sigpending(&now);
    return sigisemptyset(&now) ? 0 : 3;
}
