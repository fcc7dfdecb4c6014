// SPDX-License-Identifier: MIT
// TRUTH: allocations=37 frees=5 allocated_bytes=912 temporary=0 peak_bytes=800
// TRUTH: live_bytes=752 live_blocks=32 unknown_frees=3 processes=2
//
// Parent and child both allocate after a fork. Inherited blocks belong to the parent: the child
// does not count them again, and a free of a copy is an unknown free.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void in_child(void **inherited)
{
    void *own[20];
    for (int i = 0; i < 20; i++) {
        own[i] = malloc(32);
    }
    for (int i = 0; i < 5; i++) {
        free(own[i]);
    }
    for (int i = 0; i < 3; i++) {
        free(inherited[i]);
    }
    _exit(0);
}

int main(void)
{
    void *blocks[17];
    for (int i = 0; i < 10; i++) {
        blocks[i] = malloc(16);
    }
    const pid_t child = fork();
    if (child == 0) {
        in_child(blocks);
    }
    int status = -1;
    waitpid(child, &status, 0);
    for (int i = 10; i < 17; i++) {
        blocks[i] = malloc(16);
    }
    return status != 0 || blocks[16] == NULL;
}
