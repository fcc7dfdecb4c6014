// SPDX-License-Identifier: MIT
#include "host/threads/thread_share.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/os/file.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"

enum {
    TEXT_BYTES = 512,
};

static bool read_text(pid_t thread_id, const char *name, char *out)
{
    (void)snprintf(out, TEXT_BYTES, "/proc/self/task/%d/%s", (int)thread_id, name); // fits
    CLEANUP(fd_closep) int fd = open(out, O_RDONLY | O_CLOEXEC);
    const ssize_t len = fd >= 0 ? read(fd, out, TEXT_BYTES - 1) : -1;
    out[len > 0 ? len : 0] = '\0';
    return len > 0;
}

bool thread_share_read(pid_t thread_id, struct thread_share *out)
{
    char account[TEXT_BYTES];
    char state[TEXT_BYTES];
    struct thread_share share = {0};
    const char *at = account;
    if (!read_text(thread_id, "stat", state) || !read_text(thread_id, "schedstat", account) ||
        !number_take(&at, 10, &share.ran_ns) || *at++ != ' ' ||
        !number_take(&at, 10, &share.queued_ns)) {
        return false;
    }
    share.can_run = proc_text_state(state) == 'R';
    *out = share;
    return true;
}
