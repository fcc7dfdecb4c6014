// SPDX-License-Identifier: MIT
// brief_peaks MIB COUNT: COUNT children, one after the other, by turns forked and spawned. Each
// touches MIB MiB and ends at once, by turns with exit and _exit. The program itself touches no
// more than a child's tenth.
//
// Writes the highest resident memory of its children in bytes, as the kernel has it.
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void hold(const char *mib, int number)
{
    const size_t len_bytes = (size_t)atoi(mib) << 20;
    char *block = malloc(len_bytes);
    if (block == NULL) {
        _exit(1);
    }
    memset(block, 1, len_bytes);
    if (block[len_bytes / 2] != 1) {
        _exit(1);
    }
    free(block);
    if (number % 4 < 2) {
        exit(0);
    }
    _exit(0);
}

static pid_t begin(const char *program, char *mib, int number)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%d", number);
    pid_t pid = -1;
    if (number % 2 == 0) {
        pid = fork();
        if (pid == 0) {
            hold(mib, number);
        }
    } else {
        char *arguments[] = {"brief_peaks", mib, "hold", text, NULL};
        if (posix_spawn(&pid, program, NULL, NULL, arguments, environ) != 0) {
            exit(1);
        }
    }
    return pid;
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        hold(argv[1], atoi(argv[3]));
    }
    for (int number = 0; number < atoi(argv[2]); number++) {
        int status = -1;
        if (waitpid(begin(argv[0], argv[1], number), &status, 0) < 0 || status != 0) {
            return 1;
        }
    }
    struct rusage usage;
    (void)getrusage(RUSAGE_CHILDREN, &usage);
    return printf("%lld\n", (long long)usage.ru_maxrss * 1024) > 0 ? 0 : 1;
}
