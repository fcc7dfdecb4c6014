// SPDX-License-Identifier: MIT
// survivors: fragments its heap on purpose, prints the truth, and ends.
//
// It makes 128,000 blocks of 1,000 bytes and frees all but each 64th. A surviving block fills a
// quarter of its page; some lie on two pages. Even survivors are made by keep_session, odd ones by
// keep_message, the others by work.
// TRUTH: survivors 2000, of 1,000 bytes each; the program prints on how many pages they are.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS = 128000,
    STEP = 64,
    SIZE = 1000,
    PAGE = 4096,
};

static void *made(void *block)
{
    if (block == NULL) {
        abort();
    }
    return memset(block, 1, SIZE);
}

static void *keep_session(void)
{
    return made(malloc(SIZE));
}

static void *keep_message(void)
{
    return made(malloc(SIZE));
}

static void *work(void)
{
    return made(malloc(SIZE));
}

static int compare(const void *left, const void *right)
{
    const uintptr_t a = *(const uintptr_t *)left;
    const uintptr_t b = *(const uintptr_t *)right;
    return a < b ? -1 : a > b;
}

int main(void)
{
    static void *blocks[BLOCKS];
    static uintptr_t pages[2 * BLOCKS / STEP];
    size_t count = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = i % STEP != 0 ? work() : i / STEP % 2 == 0 ? keep_session() : keep_message();
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % STEP != 0) {
            free(blocks[i]);
            continue;
        }
        pages[count++] = (uintptr_t)blocks[i] / PAGE;
        pages[count++] = ((uintptr_t)blocks[i] + SIZE - 1) / PAGE;
    }
    qsort(pages, count, sizeof(pages[0]), compare);
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++) {
        distinct += i == 0 || pages[i] != pages[i - 1];
    }
    printf("%zu\n", distinct);
    return 0;
}
