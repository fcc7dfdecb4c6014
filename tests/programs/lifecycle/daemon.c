// SPDX-License-Identifier: MIT
// TRUTH: allocations=60 frees=40 allocated_bytes=1920 temporary=40
// TRUTH: live_bytes=640 live_blocks=20 processes=2
//
// Becomes a daemon: fork, setsid, fork again, change the directory, close every descriptor. The
// parents exit at once. The daemon waits until it is an orphan, then works and writes the file that
// its argument names. The process in between never uses the heap, so it is not recorded.
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void work(void)
{
    for (int i = 0; i < 10; i++) {
        if (malloc(32) == NULL) {
            _exit(1);
        }
        free(malloc(32));
        free(malloc(32));
    }
}

static void be_the_daemon(const char *path, pid_t first_child)
{
    while (getppid() == first_child) {
        sched_yield();
    }
    for (int fd = 0; fd < 1024; fd++) {
        close(fd);
    }
    work();
    const int out = open(path, O_WRONLY | O_CREAT, 0600);
    _exit(out >= 0 && write(out, "done\n", 5) == 5 ? 0 : 1);
}

int main(int count, char **arguments)
{
    if (count != 2) {
        return 2;
    }
    work();
    if (fork() != 0) {
        return 0;
    }
    setsid();
    const pid_t self = getpid();
    if (fork() == 0) {
        (void)!chdir("/");
        umask(0);
        be_the_daemon(arguments[1], self);
    }
    _exit(0);
}
