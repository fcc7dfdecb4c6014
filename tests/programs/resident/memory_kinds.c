// SPDX-License-Identifier: MIT
// memory_kinds HOW [FILE]: makes memory resident in one way, prints mallinfo2(3), and waits for a
// line on stdin, so that a test can read its memory map. Then it ends at once.
//
//   cache       a table of blocks of many sizes, in which new blocks replace old ones; a mapping,
//               half of it touched
//   fragmented  many small blocks; two of three are freed
//   file        FILE mapped twice, read and written to privately; shared memory
//   threads     threads with their own heap areas and deep stacks, all alive
//   pool        memory from sbrk and from one mapping that grows and shrinks, next to malloc's
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MIB = 1 << 20,
    THREADS = 60,
};

static void check(int condition, const char *what)
{
    if (!condition) {
        perror(what);
        exit(1);
    }
}

static void *map(size_t size, int flags, int fd)
{
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    check(mapped != MAP_FAILED, "mmap");
    return mapped;
}

static void *block(size_t size)
{
    void *made = malloc(size);
    check(made != NULL, "malloc");
    memset(made, 1, size);
    return made;
}

static void map_half(void)
{
    memset(map(12 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1), 1, 6 * MIB);
}

static void cache(void)
{
    enum {
        ENTRIES = 20000
    };
    static void *entries[ENTRIES];
    unsigned seed = 1;
    for (int i = 0; i < 10 * ENTRIES; i++) {
        seed = seed * 1103515245u + 12345u;
        const size_t at = (seed >> 8) % ENTRIES;
        free(entries[at]);
        entries[at] = block(1 + (seed >> 4) % 2000);
    }
    memset(malloc(8 * MIB), 1, 3 * MIB); // most of the block is never touched
    map_half();
}

static void fragmented(void)
{
    enum {
        BLOCKS = 300000
    };
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = block(40 + (size_t)i % 60);
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (i % 3 != 0) {
            free(blocks[i]);
        }
    }
}

static void file(const char *path)
{
    const int fd = open(path, O_RDONLY);
    struct stat status;
    check(fd >= 0 && fstat(fd, &status) == 0, path);
    const size_t size = (size_t)status.st_size;
    volatile const char *all = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    check(all != MAP_FAILED, "mmap");
    long sum = 0;
    for (size_t i = 0; i < size; i += 512) {
        sum += all[i];
    }
    memset(map(size, MAP_PRIVATE, fd), 1, size / 4);
    memset(map(4 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1), 1, 2 * MIB);
    check(sum != 1, "a sum that is used");
}

static pthread_barrier_t ready;
static pthread_barrier_t over;

static void *thread(void *unused)
{
    char deep[200 * 1024];
    memset(deep, 1, sizeof(deep));
    for (int i = 0; i < 200; i++) {
        void *kept = block(500);
        if (i % 2 != 0) {
            free(kept);
        }
    }
    (void)pthread_barrier_wait(&ready);
    (void)pthread_barrier_wait(&over);
    return deep[0] == 1 ? unused : NULL;
}

static void threads(void)
{
    pthread_t made;
    pthread_barrier_init(&ready, NULL, THREADS + 1);
    pthread_barrier_init(&over, NULL, THREADS + 1); // never opened
    for (int i = 0; i < THREADS; i++) {
        check(pthread_create(&made, NULL, thread, NULL) == 0, "pthread_create");
    }
    (void)pthread_barrier_wait(&ready);
}

static void pool(void)
{
    void *kept = block(3 * MIB); // besides the pool
    for (int i = 0; i < 100; i++) {
        char *piece = sbrk(10000);
        check(piece != (void *)-1, "sbrk");
        memset(piece, 1, 10000);
    }
    char *grown = map(2 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    grown = mremap(grown, 2 * MIB, 9 * MIB, MREMAP_MAYMOVE);
    check(grown != MAP_FAILED, "mremap");
    memset(grown, 1, 9 * MIB);
    check(munmap(grown + 4 * MIB, MIB) == 0, "munmap");
    check(mmap(grown + 6 * MIB, MIB, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED,
          "mmap");
    check(kept != NULL, "a block that is used");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "cache") == 0) {
        cache();
    } else if (strcmp(how, "fragmented") == 0) {
        fragmented();
    } else if (strcmp(how, "file") == 0 && argc > 2) {
        file(argv[2]);
    } else if (strcmp(how, "threads") == 0) {
        threads();
    } else if (strcmp(how, "pool") == 0) {
        pool();
    } else {
        return 2;
    }
    const struct mallinfo2 info = mallinfo2();
    printf("%zu %zu %zu %zu ready\n", info.arena, info.uordblks, info.fordblks, info.hblkhd);
    fflush(stdout);
    return getchar() == EOF;
}
