// SPDX-License-Identifier: MIT
// functions: every function of the malloc family, in its plain, odd and failing uses. The journal
// is the truth.
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "journal.h"

#define HUGE ((size_t)1 << 62)

// Declared by no header of this libc.
void cfree(void *block) __attribute__((weak));
void free_sized(void *block, size_t size) __attribute__((weak));
void free_aligned_sized(void *block, size_t alignment, size_t size) __attribute__((weak));

static void check(int condition, int line)
{
    if (!condition) {
        dprintf(2, "functions.c:%d: unexpected\n", line);
        _exit(98);
    }
}
#define CHECK(condition) check((condition) != 0, __LINE__)

static void give(void *block)
{
    if (block != NULL) {
        note("free", block, 0, NULL);
    }
    free(block);
}

static void *got(void *block, size_t size)
{
    CHECK(block != NULL);
    note("alloc", block, size, NULL);
    return block;
}

static void plain(void)
{
    give(got(malloc(100), 100));
    give(got(malloc(0), 0));
    char *zeroed = got(calloc(7, 11), 77);
    for (int i = 0; i < 77; i++) {
        CHECK(zeroed[i] == 0);
    }
    give(zeroed);
    give(got(calloc(0, 5), 0));
    give(NULL);
    void *aligned = NULL;
    CHECK(posix_memalign(&aligned, 256, 1000) == 0 && (uintptr_t)aligned % 256 == 0);
    give(got(aligned, 1000));
    give(got(aligned_alloc(64, 640), 640));
    give(got(memalign(512, 33), 33));
    give(got(valloc(17), 17));
    give(got(pvalloc(18), 18));
    char *copy = got(strdup("seventeen letters"), 18);
    CHECK(malloc_usable_size(copy) >= 18);
    give(copy);
}

static void *moved(const char *kind, void *block, size_t size, void *old)
{
    CHECK(block != NULL);
    note(kind, block, size, old);
    return block;
}

static void reallocs(void)
{
    void *block = got(realloc(NULL, 40), 40);
    void *bigger = realloc(block, 100000);
    block = moved("realloc", bigger, 100000, block);
    void *smaller = realloc(block, 10);
    block = moved("realloc", smaller, 10, block);
    CHECK(realloc(block, HUGE) == NULL && errno == ENOMEM);
    note("free", block, 0, NULL);
    CHECK(realloc(block, 0) == NULL);
    block = got(reallocarray(NULL, 3, 50), 150);
    void *array = reallocarray(block, 1000, 50);
    block = moved("realloc", array, 50000, block);
    errno = 0;
    CHECK(reallocarray(block, HUGE, 16) == NULL && errno == ENOMEM);
    give(block);
}

static void failures(void)
{
    errno = 0;
    CHECK(malloc(HUGE) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(calloc(HUGE, HUGE) == NULL && errno == ENOMEM);
    void *out = (void *)0x55;
    errno = EBADF;
    CHECK(posix_memalign(&out, 3, 10) == EINVAL && out == (void *)0x55 && errno == EBADF);
    CHECK(posix_memalign(&out, 64, HUGE) == ENOMEM && out == (void *)0x55);
    CHECK(aligned_alloc(64, HUGE) == NULL);
    CHECK(memalign(64, HUGE) == NULL);
    CHECK(valloc(HUGE) == NULL && pvalloc(HUGE) == NULL);
}

static void other_frees(void)
{
    void *block = got(malloc(5), 5);
    if (cfree != NULL) {
        note("free", block, 0, NULL);
        cfree(block);
        block = got(malloc(6), 6);
    }
    if (free_sized != NULL) {
        note("free", block, 0, NULL);
        free_sized(block, 6);
        block = got(aligned_alloc(32, 64), 64);
    }
    if (free_aligned_sized != NULL) {
        note("free", block, 0, NULL);
        free_aligned_sized(block, 32, 64);
        return;
    }
    give(block);
}

static void keeps_errno(void)
{
    for (int wanted = 1; wanted < 100; wanted++) {
        errno = wanted;
        void *block = got(malloc((size_t)wanted), (size_t)wanted);
        CHECK(errno == wanted);
        void *bigger = realloc(block, (size_t)wanted * 1000);
        CHECK(errno == wanted);
        block = moved("realloc", bigger, (size_t)wanted * 1000, block);
        give(block);
        CHECK(errno == wanted);
    }
}

// More than 2^40 bytes: the wire has records of their own for these.
static void giants(void)
{
    const size_t size = ((size_t)1 << 40) + 4096;
    void *block = malloc(size);
    if (block != NULL) { // the kernel may refuse
        (void)got(block, size);
        void *bigger = realloc(block, size + 8192);
        if (bigger != NULL) {
            block = moved("realloc", bigger, size + 8192, block);
        }
        give(block);
    }
}

int main(void)
{
    journal_mark();
    plain();
    reallocs();
    failures();
    other_frees();
    keeps_errno();
    giants();
    journal_mark();
    journal_print();
    return 0;
}
