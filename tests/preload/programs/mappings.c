// SPDX-License-Identifier: MIT
// Maps, moves and unmaps memory in every way, and says after each call what it did:
//   KIND ADDRESS SIZE OLD_ADDRESS OLD_SIZE      KIND - : nothing was mapped
// Failing calls say nothing. With "handler": from a signal handler that interrupts other hooks.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static void say(const char *kind, void *now, size_t size, void *old, size_t old_size)
{
    char line[128];
    int length = snprintf(line, sizeof(line), "%s %lx %zx %lx %zx\n", kind, (unsigned long)now,
                          size, (unsigned long)old, old_size);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) {
        abort();
    }
}

static void *map(const char *kind, int flags, int fd)
{
    void *mapped = mmap(NULL, 5 * PAGE + 7, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (mapped == MAP_FAILED) {
        abort();
    }
    say(kind, mapped, 5 * PAGE + 7, NULL, 0);
    return mapped;
}

static void move(char *mapped)
{
    void *grown = mremap(mapped, 5 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    say("same", grown, 64 * PAGE, mapped, 5 * PAGE);
    void *fixed = mmap((char *)grown + 2 * PAGE, PAGE, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    say("anonymous", fixed, PAGE, NULL, 0);
    if (munmap((char *)grown + 4 * PAGE, 3 * PAGE) != 0) {
        abort();
    }
    say("-", NULL, 0, (char *)grown + 4 * PAGE, 3 * PAGE);
}

// Where the old mapping stays, nothing is unmapped: with MREMAP_DONTUNMAP, and where a shared
// mapping is duplicated by moving nothing of it. Emulators know neither; a call that fails is none.
static void move_and_keep(void)
{
    void *private = map("anonymous", MAP_PRIVATE | MAP_ANONYMOUS, -1);
    const size_t size = 6 * PAGE;
    // The last argument is a hint with this flag, too, and glibc passes on whatever lies there.
    void *moved = mremap(private, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    if (moved != MAP_FAILED) {
        say("same", moved, size, private, 0);
    }
    void *shared = map("shared", MAP_SHARED | MAP_ANONYMOUS, -1);
    void *twin = mremap(shared, 0, size, MREMAP_MAYMOVE);
    if (twin != MAP_FAILED) {
        say("same", twin, size, shared, 0);
    }
}

static void move_break(void)
{
    char *before = sbrk((intptr_t)(3 * PAGE + 5));
    say("break", before, 3 * PAGE + 5, NULL, 0);
    if (brk(before + PAGE) != 0) {
        abort();
    }
    say("-", NULL, 0, before + PAGE, 2 * PAGE + 5);
    if (sbrk(0) != before + PAGE || sbrk(-(intptr_t)PAGE) != before + PAGE) {
        abort();
    }
    say("-", NULL, 0, before, PAGE);
}

static void fail(void)
{
    errno = 0;
    if (mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ||
        errno != EINVAL || munmap((void *)1, PAGE) != -1 || errno != EINVAL) {
        abort();
    }
    errno = EDOM; // kept by calls that succeed
    void *mapped = map("file", MAP_PRIVATE, open("/proc/self/exe", O_RDONLY));
    if (errno != EDOM || munmap(mapped, 5 * PAGE + 7) != 0 || errno != EDOM) {
        abort();
    }
    say("-", NULL, 0, mapped, 5 * PAGE + 7);
}

static volatile sig_atomic_t handled;

static void on_alarm(int number)
{
    (void)number;
    void *mapped = mmap64(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say("anonymous", mapped, 3 * PAGE, NULL, 0);
    (void)munmap(mapped, 3 * PAGE);
    say("-", NULL, 0, mapped, 3 * PAGE);
    handled++;
}

static void interrupt_hooks(void)
{
    (void)signal(SIGALRM, on_alarm);
    // One strike at a time: on a busy machine a timer that strikes by itself starves what it
    // interrupts, and no buffer for what handlers did is large enough.
    while (handled < 500) {
        const sig_atomic_t before = handled;
        const struct itimerval once = {.it_value.tv_usec = 1 + before * 7 % 50};
        (void)setitimer(ITIMER_REAL, &once, NULL);
        while (handled == before) {
            free(malloc(40));
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "handler") == 0) {
        interrupt_hooks();
        return 0;
    }
    map("shared", MAP_SHARED | MAP_ANONYMOUS, -1);
    move(map("anonymous", MAP_PRIVATE | MAP_ANONYMOUS, -1));
    move_and_keep();
    move_break();
    fail();
    return 0;
}
