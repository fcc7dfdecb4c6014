// SPDX-License-Identifier: MIT
// resident ROUNDS STACKS BLOCKS [BURST]: keeps BLOCKS blocks of 64 bytes alive, then allocates and
// frees ROUNDS blocks over STACKS distinct stacks, and prints its resident memory in KiB. It pauses
// for half a millisecond after each BURST blocks, if that is given. For tests of the overhead of
// recording.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void even(unsigned long path, int level);
static void odd(unsigned long path, int level);

static void descend(unsigned long path, int level)
{
    if (level == 0) {
        free(malloc(40));
        return;
    }
    (path & 1 ? odd : even)(path >> 1, level - 1);
}

static __attribute__((noinline)) void even(unsigned long path, int level)
{
    descend(path, level);
}

static __attribute__((noinline)) void odd(unsigned long path, int level)
{
    descend(path, level);
}

static long resident_kib(void)
{
    char text[4096];
    const int fd = open("/proc/self/status", O_RDONLY);
    const ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *line = strstr(text, "VmRSS:");
    return line == NULL ? -1 : strtol(line + 6, NULL, 10);
}

int main(int count, char **arguments)
{
    if (count != 4 && count != 5) {
        return 2;
    }
    const unsigned long rounds = strtoul(arguments[1], NULL, 10);
    const unsigned long stacks = strtoul(arguments[2], NULL, 10);
    const unsigned long blocks = strtoul(arguments[3], NULL, 10);
    const unsigned long burst = count == 5 ? strtoul(arguments[4], NULL, 10) : blocks + 1;
    for (unsigned long i = 0; i < blocks; i++) {
        memset(malloc(64), 1, 64);
        if ((i + 1) % burst == 0) {
            (void)usleep(500);
        }
    }
    for (unsigned long i = 0; i < rounds; i++) {
        descend(i % stacks, 24);
    }
    char line[32];
    const int length = snprintf(line, sizeof(line), "%ld\n", resident_kib());
    return write(STDOUT_FILENO, line, (size_t)length) == length ? 0 : 3;
}
