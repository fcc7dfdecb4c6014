// SPDX-License-Identifier: MIT
// vforked: its only thread is in vfork until the input has a line, so it can neither be stopped nor
// make a system call. Then it allocates until the input ends. Prints "vforked" and "returned".
#include "until_eof.h"

#include <sys/wait.h>

int main(void)
{
    char byte;
    int status = 0;
    const pid_t child = vfork();
    if (child == 0) {
        (void)!write(1, "vforked\n", 8);
        _exit(read(0, &byte, 1) == 1 ? 7 : 8); // the parent waits for that
    }
    (void)!write(1, "returned\n", 9);
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) {
        fail("the child's status is %d", status);
    }
    (void)start(wait_for_eof, NULL);
    while (!g_is_over) {
        void *volatile block = malloc(20);
        free(block);
        g_checks++;
    }
    return verdict();
}
