// SPDX-License-Identifier: MIT
// linked_allocator: a program with an allocator of its own inside, which works when it is told to.
//
// The names of the allocator's functions begin with PREFIX. With ALLOCX it also has jemalloc's. The
// program reads commands, one to a line, and answers each with "done": p does nothing, r does a
// round. It ends with q or its input. It allocates nothing outside the rounds. With LIBRARY it is a
// library that does a round in its constructor, and one in each call of library_round.
//
// TRUTH of a round: allocations 280, bytes 41370; with ALLOCX allocations 370, bytes 72570; each
// block is freed in its round. A realloc, a rallocx, or an xallocx that finds room in place is an
// allocation and a free.
#include <stdlib.h>
#include <unistd.h>

#ifndef PREFIX
#    define PREFIX
#endif
#define JOIN_NAMES(prefix, name) prefix##name
#define JOIN(prefix, name)       JOIN_NAMES(prefix, name)
#define OWN(name)                JOIN(PREFIX, name)

void *OWN(malloc)(size_t size);
void OWN(free)(void *block);
void *OWN(calloc)(size_t count, size_t size);
void *OWN(realloc)(void *block, size_t size);
int OWN(posix_memalign)(void **block, size_t alignment, size_t size);
void *OWN(aligned_alloc)(size_t alignment, size_t size);

enum {
    BLOCKS = 100,
    ZEROED = 50,
    ALIGNED = 20,
    ALIGNED_MORE = 10,
    EXTENDED = 30,
};

static void check(int is_right)
{
    if (!is_right) {
        _exit(3);
    }
}

#ifdef ALLOCX
void *OWN(mallocx)(size_t size, int flags);
void *OWN(rallocx)(void *block, size_t size, int flags);
size_t OWN(xallocx)(void *block, size_t size, size_t extra, int flags);
void OWN(dallocx)(void *block, int flags);
void OWN(sdallocx)(void *block, size_t size, int flags);

static void do_extended(void)
{
    char *blocks[EXTENDED];
    for (int i = 0; i < EXTENDED; i++) {
        blocks[i] = OWN(mallocx)(200, 0);
        blocks[i][0] = (char)i;
    }
    for (int i = 0; i < EXTENDED; i++) {
        blocks[i] = OWN(rallocx)(blocks[i], 400, 0);
        check(blocks[i][0] == (char)i);
        check(OWN(xallocx)(blocks[i], 440, 0, 0) >= 440); // both sizes have blocks of 448 bytes
        check(OWN(xallocx)(blocks[i], 4000, 0, 0) < 4000);
        if (i % 2 == 0) {
            OWN(dallocx)(blocks[i], 0);
        } else {
            OWN(sdallocx)(blocks[i], 440, 0);
        }
    }
}
#else
static void do_extended(void)
{
}
#endif

static void do_round(void)
{
    static char *blocks[BLOCKS];
    static void *others[ZEROED + ALIGNED + ALIGNED_MORE];
    int count = 0;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = OWN(malloc)((size_t)i + 1);
        blocks[i][0] = (char)i;
    }
    for (int i = 0; i < ZEROED; i++) {
        others[count] = OWN(calloc)(10, (size_t)i + 1);
        check(*(char *)others[count++] == 0);
    }
    for (int i = 0; i < ALIGNED; i++) {
        check(OWN(posix_memalign)(&others[count], 64, (size_t)i + 100) == 0);
        check((size_t)others[count++] % 64 == 0);
    }
    for (int i = 0; i < ALIGNED_MORE; i++) {
        others[count] = OWN(aligned_alloc)(64, 128);
        check((size_t)others[count++] % 64 == 0);
    }
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = OWN(realloc)(blocks[i], 2 * ((size_t)i + 1) + 100);
        check(blocks[i][0] == (char)i);
        OWN(free)(blocks[i]);
    }
    while (count > 0) {
        OWN(free)(others[--count]);
    }
    do_extended();
}

#ifdef LIBRARY
extern const char library_text[];
const char library_text[] = "<jemalloc>: a text by which an allocator without names is noticed";

__attribute__((visibility("default"))) void library_round(void);
void library_round(void)
{
    do_round();
}

__attribute__((constructor)) static void do_first_round(void)
{
    do_round();
}
#else
int main(void)
{
    char command;
    while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q') {
        if (command == '\n') {
            continue;
        }
        if (command == 'r') {
            do_round();
        }
        check(write(STDOUT_FILENO, "done\n", 5) == 5);
    }
    return 0;
}
#endif
