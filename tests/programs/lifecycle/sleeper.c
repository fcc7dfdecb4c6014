// SPDX-License-Identifier: MIT
//
// sleeper THREADS: each thread allocates a block and keeps it, and all sleep in one call. The main
// thread executes the bytes that it reads, and says "done" after each: `a` allocates a block, `t`
// touches 64 MiB that it has allocated at the beginning, `q` ends. It has no TRUTH, because the
// test writes the commands.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LARGE_BYTES = 64 << 20
};

static void *sleep_on(void *argument)
{
    void *volatile block = malloc(100);
    for (;;) {
        pause();
    }
    free(block);
    return argument;
}

int main(int argc, char **argv)
{
    char *large = malloc(LARGE_BYTES);
    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, sleep_on, NULL) != 0) {
            return 2;
        }
    }
    char command = 'b';
    do {
        if (command == 'a') {
            void *volatile block = malloc(1000);
            (void)block;
        } else if (command == 't') {
            memset(large, 1, LARGE_BYTES);
        }
        if (write(STDOUT_FILENO, "done\n", 5) != 5) {
            return 2;
        }
    } while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q');
    return 0;
}
