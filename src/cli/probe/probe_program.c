// SPDX-License-Identifier: MIT
// probe_program: the program that `cairn self-test` records: a thread and a child process, and
// blocks of sizes that no library has.
//
//   probe_program        works at once
//   probe_program wait   waits until cairn records it
//
// way_probe.c has what the recording must contain. It is built twice, linked dynamically and
// statically. Exit status 3: not recorded in time.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cairn.h>

#include "cli/probe/probe_work.h"

enum {
    WAITS = 5000,
    WAIT_NS = 2 * 1000 * 1000,
};

static void *volatile latest; // no compiler leaves out what it points to

__attribute__((noinline)) static void allocate(size_t bytes, int count, int kept)
{
    for (int i = 0; i < count; i++) {
        void *block = malloc(bytes);
        latest = block;
        if (block == NULL) {
            _exit(1);
        }
        memset(block, i, bytes);
        if (i >= kept) {
            free(block);
        }
    }
}

static void *work_in_thread(void *context)
{
    allocate(PROBE_THREAD_BYTES, PROBE_THREAD_COUNT, 0);
    return context;
}

static int work_in_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        allocate(PROBE_CHILD_BYTES, PROBE_CHILD_COUNT, 0);
        exit(0);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int is_recorded_in_time(void)
{
    const struct timespec pause = {.tv_nsec = WAIT_NS};
    for (int i = 0; i < WAITS && !cairn_is_recording(); i++) {
        (void)nanosleep(&pause, NULL); // a shorter sleep does no harm
    }
    return cairn_is_recording();
}

int main(int count, char **words)
{
    if (count > 1 && strcmp(words[1], "wait") == 0 && !is_recorded_in_time()) {
        return 3;
    }
    pthread_t thread;
    allocate(PROBE_MAIN_BYTES, PROBE_MAIN_COUNT, PROBE_MAIN_KEPT);
    const int has_thread =
        pthread_create(&thread, NULL, work_in_thread, NULL) == 0 && pthread_join(thread, NULL) == 0;
    return has_thread && work_in_child() ? 0 : 1;
}
