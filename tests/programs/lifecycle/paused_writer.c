// SPDX-License-Identifier: MIT
// paused_writer: a library that a test adds to cairn's own LD_PRELOAD. While the file that
// PAUSED_WRITER names exists, a forked copy of cairn stops itself (SIGSTOP) after it has written
// the third part of a recording. So a test can hold a checkpoint in the middle.
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum {
    PARTS_BEFORE = 3
};

static pid_t g_first; // the loading process; copies have other pids
static int g_parts;

__attribute__((constructor)) static void remember(void)
{
    g_first = getpid();
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset);

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
    const ssize_t wrote = (ssize_t)syscall(SYS_pwrite64, fd, data, len, offset);
    const char *file = getenv("PAUSED_WRITER");
    if (getpid() != g_first && file != NULL && access(file, F_OK) == 0 &&
        ++g_parts == PARTS_BEFORE) {
        (void)raise(SIGSTOP);
    }
    return wrote;
}
