// SPDX-License-Identifier: MIT
// TRUTH: blocks=7 block_bytes=777
//
// late_first WHO: says "ready", reads a line, and ends or becomes another program before it has
// taken a block. Then BLOCKS are taken, and kept: by WHO "child", which it has forked, when it has
// ended, or by "memory", which is its own executable in a file that has no path (memfd_create).
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
    BLOCKS = 7,
    BLOCK_BYTES = 777,
    AFTER_MS = 100, // a recorder that does not wait has ended by then
};

static int take_blocks(void)
{
    void *volatile block = NULL;
    for (int i = 0; i < BLOCKS; i++) {
        block = malloc(BLOCK_BYTES);
    }
    return block == NULL;
}

static int leave_child(void)
{
    const struct timespec after = {.tv_nsec = AFTER_MS * 1000000};
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child != 0) {
        _exit(child < 0);
    }
    while (getppid() == parent || nanosleep(&after, NULL) != 0) {
        (void)usleep(1000);
    }
    return take_blocks();
}

static int execute_memory(bool by_number)
{
    struct stat status;
    char *const arguments[] = {"late_first", "blocks", NULL};
    const int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    const int to = memfd_create("program", MFD_CLOEXEC);
    if (fstat(from, &status) != 0 ||
        sendfile(to, from, NULL, (size_t)status.st_size) != status.st_size) {
        return 2;
    }
    if (by_number) {
        (void)syscall(SYS_execveat, to, "", arguments, environ, AT_EMPTY_PATH);
    } else {
        (void)fexecve(to, arguments, environ);
    }
    return 3;
}

int main(int count, char **arguments)
{
    const char *who = count > 1 ? arguments[1] : "";
    char byte;
    if (strcmp(who, "blocks") == 0) {
        return take_blocks();
    }
    if (write(STDOUT_FILENO, "ready\n", 6) != 6 || read(STDIN_FILENO, &byte, 1) != 1) {
        return 1;
    }
    return strcmp(who, "child") == 0 ? leave_child() : execute_memory(strcmp(who, "number") == 0);
}
