// SPDX-License-Identifier: MIT
//
// taking_turns FIFO1 FIFO2: two threads that each work when they are told to. Each reads commands
// from its file, one per line, and writes "done" to the standard output after each. It has no
// TRUTH, because the test writes the commands.
//
//   ROUNDS    allocates and frees DEEP blocks at two stacks, ROUNDS times
//   ROUNDS+   and allocates a block of 100,000 bytes that it keeps
//
// A thread ends with its file, and the program with its threads. They share nothing, and the main
// thread only waits for them.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    DEEP = 30,
};

static void *take(size_t size)
{
    return malloc(size);
}

static void work(unsigned long rounds)
{
    void *blocks[DEEP];
    for (unsigned long round = 0; round < rounds; round++) {
        for (size_t i = 0; i < DEEP; i++) {
            blocks[i] = i % 2 == 0 ? malloc(100 + i) : take(200 + i);
        }
        for (size_t i = 0; i < DEEP; i++) {
            free(blocks[i]);
        }
    }
}

static void *obey(void *path)
{
    void *volatile kept = NULL;
    char line[64];
    size_t len = 0;
    const int commands = open(path, O_RDONLY);
    while (len + 1 < sizeof(line) && read(commands, line + len, 1) == 1) {
        if (line[len] != '\n') {
            len++;
            continue;
        }
        line[len] = '\0';
        work(strtoul(line, NULL, 10));
        if (line[len - 1] == '+') {
            kept = malloc(100000);
        }
        len = 0;
        if (write(STDOUT_FILENO, "done\n", 5) != 5) {
            break;
        }
    }
    (void)kept;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        if (argc != 3 || pthread_create(&threads[i], NULL, obey, argv[i + 1]) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return 0;
}
