// SPDX-License-Identifier: MIT
// shared_tree: maps 64 MiB of shared memory and touches it, starts six children that touch it, too,
// prints "ready", waits for a line, and ends them.
// TRUTH: all processes together have 64 MiB of shared memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHILDREN = 6,
    BYTES = 64 << 20,
    PAGE = 4096,
};

static char *map_shared(void)
{
    return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

// Allocate, so that the child is recorded, touch all pages, say so, and wait until the parent
// closes its end of `go`.
static void be_child(const volatile char *shared, int touched, const int go[2])
{
    char *volatile block = malloc(1);
    char byte = 0;
    for (size_t at = 0; at < BYTES; at += PAGE) {
        byte = (char)(byte + shared[at]);
    }
    (void)close(go[1]);
    (void)write(touched, &byte, 1);
    (void)read(go[0], &byte, 1);
    free(block);
    _exit(0);
}

int main(void)
{
    char *shared = map_shared();
    int touched[2];
    int go[2];
    char byte = 0;
    if (shared == MAP_FAILED || pipe(touched) != 0 || pipe(go) != 0) {
        return 1;
    }
    memset(shared, 1, BYTES);
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() == 0) {
            be_child(shared, touched[1], go);
        }
    }
    for (int i = 0; i < CHILDREN; i++) {
        (void)read(touched[0], &byte, 1);
    }
    (void)puts("ready");
    (void)fflush(stdout);
    (void)getchar();
    (void)close(go[1]);
    while (wait(NULL) > 0) {
    }
    return 0;
}
