// SPDX-License-Identifier: MIT
//
// moved_clock: gives cairn a clock that a test moves. Preloaded; in a program of another name it
// does nothing.
//
// The file that MOVED_CLOCK names has 8 bytes: by how many nanoseconds the clocks of this machine
// are ahead. The clocks of processors' time stay as they are. A wait for a file ends when the moved
// clock says so.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_NS = 10000000, // the clock may be moved during a wait
    NS_PER_MS = 1000000,
    NS_PER_S = 1000000000,
};

static const _Atomic int64_t none;
static const _Atomic int64_t *ahead_ns = &none;

static __attribute__((constructor)) void find_clock(void)
{
    const char *path = getenv("MOVED_CLOCK");
    if (path == NULL || strcmp(program_invocation_short_name, "cairn") != 0) {
        return;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *page = mmap(NULL, sizeof(*ahead_ns), PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        abort();
    }
    close(fd);
    ahead_ns = page;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (syscall(SYS_clock_gettime, clock, out) != 0) {
        return -1;
    }
    if (clock >= 0 && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID) {
        int64_t ns = out->tv_sec * NS_PER_S + out->tv_nsec + atomic_load(ahead_ns);
        *out = (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
    }
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *limit, const sigset_t *mask)
{
    const int64_t end_ns =
        limit != NULL ? now_ns() + limit->tv_sec * NS_PER_S + limit->tv_nsec : INT64_MAX;
    for (;;) {
        int64_t rest_ns = end_ns - now_ns();
        rest_ns = rest_ns < 0 ? 0 : rest_ns > LOOK_NS ? LOOK_NS : rest_ns;
        struct timespec rest = {.tv_nsec = rest_ns};
        int ready = (int)syscall(SYS_ppoll, files, count, &rest, mask, _NSIG / 8);
        if (ready != 0 || now_ns() >= end_ns) {
            return ready;
        }
    }
}

int poll(struct pollfd *files, nfds_t count, int limit_ms)
{
    const int64_t ms = limit_ms;
    struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS};
    return ppoll(files, count, limit_ms >= 0 ? &limit : NULL, NULL);
}
