// SPDX-License-Identifier: MIT
// guarded_pool: an allocator inside the program, in pages where a call by pointer must land on a
// landing pad (BTI), whose functions sign their return addresses.
//
// It has the names of jemalloc, and is called by pointer and directly. Each line of its input is a
// number of rounds; the program answers with the sums of its calls so far:
//   "ROUNDS\n" -> "ALLOCATIONS FREES\n"
// With the word `guarded` its pages are so, if the processor can; without it they are like others.
// With the word `tagged` the highest byte of each of its pointers is a tag. One block in two is
// freed by a pointer with another tag.
// A round allocates 100 and 50 bytes and 3 times 10, and frees the first two.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARDED   0x10       // PROT_BTI of asm/mman.h
#define CAN_GUARD (1u << 17) // HWCAP2_BTI of asm/hwcap.h

#define TAG_AT 56

static char pool[1 << 20];
static size_t used;
static bool is_tagged;
static uint64_t tag;
static long allocations;
static long frees;

static void *with_tag(void *block, uint64_t of)
{
    const uint64_t address = (uint64_t)block & UINT64_MAX >> 8;
    return (void *)(is_tagged ? address | of << TAG_AT : address);
}

static __attribute__((noinline)) void *place(size_t size)
{
    const size_t room = (size + 15) & ~(size_t)15;
    used = used + room > sizeof(pool) ? 0 : used;
    void *block = pool + used;
    used += room;
    return with_tag(block, tag++);
}

__attribute__((noinline, section(".guarded"), aligned(4096))) void *je_malloc(size_t size)
{
    void *block = place(size); // a frame of its own: it begins with paciasp
    allocations++;
    return block;
}

__attribute__((noinline, section(".guarded"))) void *je_calloc(size_t count, size_t size)
{
    void *block = memset(place(count * size), 0, count * size);
    allocations++;
    return block;
}

__attribute__((noinline, section(".guarded"))) void *je_realloc(void *old, size_t size)
{
    return memmove(place(size), old, size);
}

__attribute__((noinline, section(".guarded"))) void je_free(void *block)
{
    if (block != NULL) { // a leaf: it begins with bti c
        frees++;
    }
}

// Guard the page with the functions. Start files of the C library, elsewhere, have no pads.
static int guard(void)
{
    if ((getauxval(AT_HWCAP2) & CAN_GUARD) == 0) {
        return 0;
    }
    const size_t page = (size_t)getpagesize();
    const size_t at = (size_t)je_malloc & ~(page - 1);
    return mprotect((void *)at, page, PROT_READ | PROT_EXEC | GUARDED);
}

int main(int count, char **words)
{
    if (count > 1 && words[1][0] == 'g' && guard() != 0) {
        return 1;
    }
    is_tagged = count > 1 && words[1][0] == 't';
    void *(*volatile by_pointer)(size_t) = je_malloc;
    void *(*volatile zeroed_by_pointer)(size_t, size_t) = je_calloc;
    void (*volatile free_by_pointer)(void *) = je_free;
    char line[32];
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("0 0\n");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        for (int rounds = atoi(line); rounds > 0; rounds--) {
            void *first = by_pointer(100);
            void *second = je_malloc(50);
            (void)zeroed_by_pointer(3, 10);
            free_by_pointer(with_tag(first, tag));
            je_free(second);
        }
        printf("%ld %ld\n", allocations, frees);
    }
    fflush(stdout);
    _exit(0);
}
