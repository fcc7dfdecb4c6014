// SPDX-License-Identifier: MIT
//
// leaderless [FILE]: obedient (obedient.c), in a thread that lives longer than the first one. The
// kernel shows no memory under the number of such a process. It has no TRUTH, like obedient.
#include <pthread.h>

#define main obey_all
#include "obedient.c"
#undef main

static void *run(void *arguments)
{
    char **argv = arguments;
    exit(obey_all(argv[1] != NULL ? 2 : 1, argv));
}

int main(int argc, char **argv)
{
    (void)argc;
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argv) != 0) {
        return 1;
    }
    pthread_exit(NULL);
}
