// SPDX-License-Identifier: MIT
// dead_process: the pid of a process that has ended. Context: tests, after cmocka.h.
#pragma once

#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

static inline uint32_t dead_process_pid(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return (uint32_t)pid;
}
