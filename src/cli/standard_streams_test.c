// SPDX-License-Identifier: MIT
// standard_streams: closed descriptors 0 to 2 are occupied, and their use fails as before.
#include "cli/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

// Close the streams whose bits are set, occupy them, and return whether all is as it has to be.
static bool is_occupied(unsigned closed)
{
    for (int fd = 0; fd < 3; fd++) {
        if ((closed >> fd & 1) != 0) {
            (void)close(fd);
        }
    }
    standard_streams_occupy();
    for (int fd = 0; fd < 3; fd++) {
        char byte = 0;
        const int flags = fcntl(fd, F_GETFD);
        const bool is_closed = (closed >> fd & 1) != 0;
        if (flags < 0 || (is_closed && (flags & FD_CLOEXEC) == 0)) {
            return false;
        }
        const ssize_t done = fd == 0 ? read(fd, &byte, 1) : write(fd, &byte, 0);
        if (is_closed && (done >= 0 || errno != EBADF)) {
            return false;
        }
    }
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return next > 2;
}

static void closed_streams_are_occupied_and_their_use_fails(void **state)
{
    (void)state;
    for (unsigned closed = 0; closed < 8; closed++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            const int null = open("/dev/null", O_RDWR);
            (void)dup2(null, STDIN_FILENO);
            _exit(is_occupied(closed) ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

// Return the errno of a write beyond the limit, and whether an ignored signal is left alone.
static void a_write_beyond_the_limit_fails_with_its_reason(void **state)
{
    (void)state;
    for (int is_ignored = 0; is_ignored <= 1; is_ignored++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct sigaction after;
            const struct rlimit none = {0, 0};
            const int file = memfd_create("limited", MFD_CLOEXEC);
            (void)signal(SIGXFSZ, is_ignored != 0 ? SIG_IGN : SIG_DFL);
            standard_streams_outlive_limit();
            (void)sigaction(SIGXFSZ, NULL, &after);
            (void)setrlimit(RLIMIT_FSIZE, &none);
            const bool is_told = write(file, "x", 1) < 0 && errno == EFBIG;
            _exit(is_told && (after.sa_handler == SIG_IGN) == (is_ignored != 0) ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_streams_are_occupied_and_their_use_fails),
        cmocka_unit_test(a_write_beyond_the_limit_fails_with_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
