// SPDX-License-Identifier: MIT
//
// spreading: executes the commands that it reads, one per line, and writes "done" after each. It
// has no TRUTH, because the test writes the commands. Its first process allocates nothing itself,
// but pthread_create and each new thread of glibc do.
//
//   f COUNT SIZE   forks a child that allocates COUNT blocks of SIZE bytes, frees one and ends; and
//                  waits for it
//   t COUNT SIZE   COUNT threads, each of which allocates and frees 100 blocks of SIZE bytes; and
//                  waits for them
//   k COUNT SIZE   the same, but the child keeps its blocks and waits, and is not waited for
//   c              lets all such children allocate and free a block and end; and waits for them
//   p              nothing
//   q              returns from main
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    COUNT_MAX = 64,
    PAIRS = 100
};

static void *kept[COUNT_MAX];
static size_t size;
static int waiting; // children
static int ready[2];
static int go[2];

static void *churn(void *unused)
{
    for (int i = 0; i < PAIRS; i++) {
        free(malloc(size));
    }
    return unused;
}

static void run_threads(int count)
{
    pthread_t threads[COUNT_MAX];
    for (int i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, churn, NULL) != 0) {
            _exit(1);
        }
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void run_child(int count)
{
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < count; i++) {
            kept[i] = malloc(size);
        }
        free(kept[0]);
        _exit(0);
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) {
        _exit(1);
    }
}

static void run_waiting_child(int count)
{
    char byte;
    if (fork() == 0) {
        for (int i = 0; i < count; i++) {
            kept[i] = malloc(size);
        }
        if (write(ready[1], "", 1) != 1 || read(go[0], &byte, 1) != 1) {
            _exit(1);
        }
        free(malloc(size));
        _exit(0);
    }
    waiting++;
    if (read(ready[0], &byte, 1) != 1) {
        _exit(1);
    }
}

static void end_waiting_children(void)
{
    for (; waiting > 0; waiting--) {
        int status = 1;
        if (write(go[1], "", 1) != 1 || wait(&status) < 0 || status != 0) {
            _exit(1);
        }
    }
}

static int execute(const char *line)
{
    char command;
    int count = 0;
    unsigned wanted = 0;
    if (sscanf(line, "%c %d %u", &command, &count, &wanted) < 1 || count > COUNT_MAX) {
        _exit(1);
    }
    size = wanted;
    if (command == 'f') {
        run_child(count);
    } else if (command == 't') {
        run_threads(count);
    } else if (command == 'k') {
        run_waiting_child(count);
    } else if (command == 'c') {
        end_waiting_children();
    }
    return command != 'q';
}

int main(void)
{
    char line[64];
    size_t length = 0;
    if (pipe(ready) != 0 || pipe(go) != 0) {
        return 1;
    }
    while (length < sizeof(line) - 1 && read(0, line + length, 1) == 1) {
        if (line[length++] != '\n') {
            continue;
        }
        line[length] = '\0';
        length = 0;
        if (!execute(line)) {
            return 0;
        }
        if (write(1, "done\n", 5) != 5) {
            return 1;
        }
    }
    return 1;
}
