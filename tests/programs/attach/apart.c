// SPDX-License-Identifier: MIT
// apart LIBRARY COUNT: loads the library COUNT times into a linker namespace of its own (dlmopen),
// so with a libc of its own, and unloads it.
// TRUTH: each load calls apart_begin, which allocates 77 bytes, and apart_end, which frees them.
// For each load main, a thread and a forked child call apart_make once. Each call allocates 100 and
// 50 bytes; the 50 bytes stay.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *call(void *function)
{
    return (*(void *(**)(void))function)();
}

static void use(void *(*make)(void))
{
    pthread_t thread;
    (void)make();
    if (pthread_create(&thread, NULL, call, &make) != 0) {
        abort();
    }
    (void)pthread_join(thread, NULL);
    const pid_t child = fork();
    if (child == 0) {
        (void)make();
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    for (int i = 0; argc > 2 && i < atoi(argv[2]); i++) {
        void *library = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
        void *(*make)(void) =
            library != NULL ? (void *(*)(void))dlsym(library, "apart_make") : NULL;
        if (make == NULL) {
            return 1;
        }
        use(make);
        (void)dlclose(library);
    }
    return 0;
}
