// SPDX-License-Identifier: MIT
// guarded_pool: an allocator inside the program, in pages where a call by pointer must land on a
// landing pad (BTI), whose functions sign their return addresses.
//
// It has the names of jemalloc, and is called by pointer and directly. Each line of its input is a
// number of rounds; the program answers with the sums of its calls so far:
//   "ROUNDS\n" -> "ALLOCATIONS FREES\n"
// With the word `guarded` its pages are so, if the processor can; without it they are like others.
// With the word `tagged` the highest byte of each of its pointers is a tag. One block in two is
// freed by a pointer with another tag. With `checked` the processor compares the tags with those of
// the memory in each access (MTE), if it can.
// A round allocates 100 and 50 bytes and 3 times 10, and frees the first two.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define GUARDED   0x10       // PROT_BTI of asm/mman.h
#define CAN_GUARD (1u << 17) // HWCAP2_BTI of asm/hwcap.h

#define TAG_AT        56
#define TAGGED_MEMORY 0x20                       // PROT_MTE
#define CAN_CHECK     (1u << 18)                 // HWCAP2_MTE
#define CHECK_AT_ONCE (1 | 1 << 1 | 0xffff << 3) // each access, any tag: linux/prctl.h

enum {
    POOL_BYTES = 1 << 20,
    GRANULE = 16, // bytes of memory with one tag
};

static char plain_memory[POOL_BYTES];
static char *pool = plain_memory;
static size_t used;
static bool is_tagged;
static bool is_checked;
static uint64_t tag;
static long allocations;
static long frees;

static void *with_tag(void *block, uint64_t of)
{
    const uint64_t address = (uint64_t)block & UINT64_MAX >> 8;
    return (void *)(is_tagged ? address | of << TAG_AT : address);
}

// Give the memory of a new block the tag of the pointer to it.
static void tag_memory(char *block, size_t size)
{
    for (size_t at = 0; at < size; at += GRANULE) {
        __asm__ volatile(".arch armv8.5-a+memtag\n\tstg %0, [%0]" ::"r"(block + at) : "memory");
    }
}

// By single bytes: qemu 7.2 finds a wrong tag where an access is in two granules.
static void *fill(void *block, char with, size_t size)
{
    for (volatile char *at = block; size > 0; size--) {
        *at++ = with;
    }
    return block;
}

static __attribute__((noinline)) void *place(size_t size)
{
    const size_t room = (size + 15) & ~(size_t)15;
    used = used + room > POOL_BYTES ? 0 : used;
    void *block = with_tag(pool + used, tag++);
    used += room;
    if (is_checked) {
        tag_memory(block, room);
    }
    return block;
}

__attribute__((noinline, section(".guarded"), aligned(4096))) void *je_malloc(size_t size)
{
    void *block = place(size); // a frame of its own: it begins with paciasp
    allocations++;
    return block;
}

__attribute__((noinline, section(".guarded"))) void *je_calloc(size_t count, size_t size)
{
    void *block = fill(place(count * size), 0, count * size);
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

static int check_tags(void)
{
    if ((getauxval(AT_HWCAP2) & CAN_CHECK) == 0) {
        return 0;
    }
    is_checked = true;
    pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE | TAGGED_MEMORY,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pool == MAP_FAILED ? -1 : prctl(PR_SET_TAGGED_ADDR_CTRL, CHECK_AT_ONCE, 0, 0, 0);
}

int main(int count, char **words)
{
    if (count > 1 && words[1][0] == 'g' && guard() != 0) {
        return 1;
    }
    is_tagged = count > 1 && (words[1][0] == 't' || words[1][0] == 'c');
    if (count > 1 && words[1][0] == 'c' && check_tags() != 0) {
        return 1;
    }
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
            fill(second, 1, 50);
            (void)zeroed_by_pointer(3, 10);
            free_by_pointer(with_tag(first, tag));
            je_free(second);
        }
        printf("%ld %ld\n", allocations, frees);
    }
    fflush(stdout);
    _exit(0);
}
