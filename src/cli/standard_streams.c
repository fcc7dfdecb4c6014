// SPDX-License-Identifier: MIT
#include "cli/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

void standard_streams_occupy(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) {
            continue;
        }
        // The lowest free number is this one: those below are open.
        const int way = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (open("/dev/null", way | O_CLOEXEC) != fd) {
            return;
        }
    }
}

static void do_nothing(int number)
{
    (void)number;
}

void standard_streams_outlive_limit(void)
{
    const struct sigaction handler = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    struct sigaction before;
    if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
        (void)sigaction(SIGXFSZ, &handler, NULL); // valid
    }
}
