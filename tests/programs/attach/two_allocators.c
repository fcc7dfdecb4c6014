// SPDX-License-Identifier: MIT
// two_allocators: a program with an allocator of its own besides libc's, each of which keeps a
// known amount. The names of the other allocator's functions begin with PREFIX. With LOADED it is
// the library named by the first argument, loaded by dlopen apart from the program's names.
//
// The program does half of its work, says "half", reads a line, does the rest, says "whole" and
// what glibc's mallinfo2 says of libc's heap, in bytes: "libc_used", "libc_free". It reads another
// line.
//
// TRUTH. Live at the end: of libc 6144 blocks of 4000 bytes by libc_keeps and 2 by pin, and of the
// other allocator 2048 blocks of 10000 bytes by other_keeps. Freed, but kept: 1024 blocks of 8 KiB
// of libc, below a block that stays, and 1536 of the other one; the second half uses these again.
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_NAMES(prefix, name) prefix##name
#define JOIN(prefix, name)       JOIN_NAMES(prefix, name)

enum {
    HALVES = 2,
    LIBC_BLOCKS = 3072, // in each half
    LIBC_BYTES = 4000,
    OTHER_BLOCKS = 1024,
    OTHER_BYTES = 10000,
    FREED_BYTES = 8 << 10,
    LIBC_FREED = 1024,
    OTHER_FREED = 1536,
};

static void *(*other_malloc)(size_t size);
static void (*other_free)(void *block);

#ifdef LOADED
// tcmalloc's thread-local storage is aligned to 64 bytes. glibc for AArch64 loads such a library
// later only if the program's own needs that too.
static __thread _Alignas(64) volatile char aligned;

static void find_other(const char *path)
{
    aligned = 1;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        exit(3);
    }
    *(void **)&other_malloc = dlsym(library, "malloc");
    *(void **)&other_free = dlsym(library, "free");
}
#else
void *JOIN(PREFIX, malloc)(size_t size);
void JOIN(PREFIX, free)(void *block);

static void find_other(const char *path)
{
    (void)path;
    other_malloc = JOIN(PREFIX, malloc);
    other_free = JOIN(PREFIX, free);
}
#endif

__attribute__((noinline)) static void libc_keeps(void)
{
    for (int i = 0; i < LIBC_BLOCKS; i++) {
        memset(malloc(LIBC_BYTES), 1, LIBC_BYTES);
    }
}

__attribute__((noinline)) static void other_keeps(void)
{
    for (int i = 0; i < OTHER_BLOCKS; i++) {
        memset(other_malloc(OTHER_BYTES), 1, OTHER_BYTES);
    }
}

__attribute__((noinline)) static void pin(void)
{
    memset(malloc(LIBC_BYTES), 1, LIBC_BYTES);
}

static void take_and_free(void *(*take)(size_t), void (*give)(void *), int count)
{
    void *blocks[OTHER_FREED];
    for (int i = 0; i < count; i++) {
        blocks[i] = memset(take(FREED_BYTES), 1, FREED_BYTES);
    }
    if (take == malloc) {
        pin();
    }
    for (int i = 0; i < count; i++) {
        give(blocks[i]);
    }
}

int main(int argc, char **argv)
{
    char line[8];
    find_other(argc > 1 ? argv[1] : NULL);
    for (int i = 0; i < HALVES; i++) {
        libc_keeps();
        other_keeps();
        take_and_free(malloc, free, LIBC_FREED);
        take_and_free(other_malloc, other_free, OTHER_FREED);
        const struct mallinfo2 info = mallinfo2();
        if (i == 0) {
            puts("half");
        } else {
            printf("libc_used %zu\nlibc_free %zu\nwhole\n", info.uordblks + info.hblkhd,
                   info.fordblks);
        }
        (void)fflush(stdout);
        if (fgets(line, sizeof(line), stdin) == NULL) {
            return 4;
        }
    }
    return 0;
}
