// SPDX-License-Identifier: MIT
// huge_pages WHERE WRITTEN: 64 MiB of huge pages, where the kernel gives them, of which the first
// WRITTEN pages of each are written. WHERE is `mapped` or `block` (of malloc). Answers each line of
// its input with how many bytes the kernel says are in huge pages and "done", until one begins with
// q.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    HUGE_BYTES = 2 << 20,
    HUGE_PAGES = 32
};

static unsigned long huge_kib(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        (void)sscanf(line, "AnonHugePages: %lu", &kib);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kib;
}

__attribute__((noinline)) static char *map_index(size_t size_bytes)
{
    void *made = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return made == MAP_FAILED ? NULL : made;
}

int main(int argc, char **argv)
{
    const size_t bytes = (size_t)(HUGE_PAGES + 1) * HUGE_BYTES;
    char *made = argc < 3                         ? NULL
                 : strcmp(argv[1], "mapped") == 0 ? map_index(bytes)
                                                  : malloc(bytes);
    if (made == NULL) {
        return 1;
    }
    char *first = made + (HUGE_BYTES - (uintptr_t)made % HUGE_BYTES) % HUGE_BYTES;
    (void)madvise(first, (size_t)HUGE_PAGES * HUGE_BYTES, MADV_HUGEPAGE); // a kernel may have none
    const long written = strtol(argv[2], NULL, 10);
    for (long i = 0; i < HUGE_PAGES; i++) {
        for (long page = 0; page < written; page++) {
            memset(first + i * HUGE_BYTES + page * 4096, 1, 4096);
        }
    }
    for (char line[16]; fgets(line, sizeof(line), stdin) != NULL && line[0] != 'q';) {
        (void)printf("%lu\ndone\n", huge_kib() << 10);
        (void)fflush(stdout);
    }
    if (strcmp(argv[1], "mapped") != 0) {
        free(made);
    }
    return 0;
}
