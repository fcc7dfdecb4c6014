// SPDX-License-Identifier: MIT
// glibc_heap: the heaps of a child, compared with its mallinfo2(3), and drawn ones that were
// overwritten.
#include "recorder/outside/glibc_heap.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/page_size.h"

#define PAGE        UINT64_C(4096)
#define HEAP        UINT64_C(0x8000000) // a multiple of 64 MiB
#define HEAP_PAGES  UINT64_C(8)
#define BLOCKS      UINT64_C(0x20000000)
#define BLOCK_PAGES UINT64_C(6)
#define STATE       (HEAP + 48)
#define BINS_AT     112
#define CHUNKS      (HEAP + 2400) // the first chunk

enum {
    DRAWN_CHUNKS = 12,
    CHUNK_BYTES = 512,
    CHANGES = 20000,
};

// What the child says of its heap.
struct told {
    size_t free_bytes;
    size_t arena_bytes;
    size_t large_bytes;
};

static void *fill_arena(void *barrier)
{
    void *blocks[2000];
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        blocks[i] = malloc(20 + i);
    }
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        if (i % 7 != 0) {
            free(blocks[i]);
        }
    }
    (void)pthread_barrier_wait(barrier);
    while (pause() != 0) { // never 0
    }
    return NULL;
}

// Allocate in the main arena and in another one, large blocks, too, and wait.
static void be_child(struct told *told, int ready)
{
    pthread_barrier_t barrier;
    pthread_t thread;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)pthread_barrier_init(&barrier, NULL, 2);
    (void)pthread_create(&thread, NULL, fill_arena, &barrier);
    (void)pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < 3; i++) {
        char *large = malloc((i + 1) << 20);
        memset(large, 1, (i + 1) << 20);
        __asm__ volatile("" : : "r"(large) : "memory"); // nothing frees it
    }
    const struct mallinfo2 info = mallinfo2();
    *told = (struct told){
        .free_bytes = info.fordblks, .arena_bytes = info.arena, .large_bytes = info.hblkhd};
    (void)!write(ready, "x", 1);
    for (;;) {
        (void)pause();
    }
}

static uint64_t sum_of_free(const struct foreign_heap *heap)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < heap->free.len; i++) {
        bytes += heap->free.items[i].end - heap->free.items[i].start;
    }
    return bytes;
}

static uint64_t sum_of_claims(const struct foreign_heap *heap, enum heap_claim_kind kind)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < heap->claims.len; i++) {
        const struct heap_claim *claim = heap->claims.items + i;
        bytes += claim->kind == kind ? claim->range.end - claim->range.start : 0;
    }
    return bytes;
}

static void read_child(pid_t child, struct foreign_heap *out)
{
    char path[64];
    CLEANUP(memory_areas_release) struct memory_areas map = {0};
    CLEANUP(u64_vec_release) struct u64_vec tops = {0};
    (void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)child); // fits
    int memory_fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(memory_fd >= 0);
    const struct memory_source memory = {.read = memory_read, .context = &memory_fd};
    assert_int_equal(memory_areas_read(child, &map), ERR_OK);
    assert_int_equal(glibc_heap_read(&map, &memory, &tops, out), ERR_OK);
    assert_int_equal(close(memory_fd), 0);
}

static void heaps_are_as_glibc_says(void **state)
{
    (void)state;
    int ready[2];
    char byte;
    CLEANUP(foreign_heap_release) struct foreign_heap heap = {0};
    struct told *told =
        mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(told != MAP_FAILED);
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        be_child(told, ready[1]);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    read_child(child, &heap);
    if (told->arena_bytes > 0) { // else a sanitizer has replaced malloc
        assert_true(heap.is_whole);
        assert_int_equal(sum_of_free(&heap), told->free_bytes);
        assert_true(sum_of_claims(&heap, HEAP_CLAIM_CHUNKS) >= told->arena_bytes);
        assert_true(sum_of_claims(&heap, HEAP_CLAIM_CHUNKS) < told->arena_bytes + (1u << 20));
        assert_int_equal(sum_of_claims(&heap, HEAP_CLAIM_BLOCKS), told->large_bytes);
        assert_int_equal(heap.tops.len, 1); // of the thread's arena, and not of the main one
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(close(ready[0]), 0);
    assert_int_equal(close(ready[1]), 0);
    assert_int_equal(munmap(told, sizeof(*told)), 0);
}

// One arena with some free chunks in a list, and blocks with mappings of their own.
struct drawn {
    uint64_t heap[HEAP_PAGES * PAGE / sizeof(uint64_t)];
    uint64_t blocks[BLOCK_PAGES * PAGE / sizeof(uint64_t)];
};

static bool read_drawn(void *context, uint64_t address, void *out, size_t size_bytes)
{
    const struct drawn *drawn = context;
    const struct {
        uint64_t start;
        const void *bytes;
        size_t size_bytes;
    } parts[] = {{HEAP, drawn->heap, sizeof(drawn->heap)},
                 {BLOCKS, drawn->blocks, sizeof(drawn->blocks)}};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (address >= parts[i].start && address - parts[i].start < parts[i].size_bytes &&
            size_bytes <= parts[i].size_bytes - (address - parts[i].start)) {
            memcpy(out, (const char *)parts[i].bytes + (address - parts[i].start), size_bytes);
            return true;
        }
    }
    return false;
}

static uint64_t *word_at(struct drawn *drawn, uint64_t address)
{
    return drawn->heap + (address - HEAP) / sizeof(uint64_t);
}

static void draw(struct drawn *drawn)
{
    *drawn = (struct drawn){.heap = {STATE, 0, HEAP_PAGES * PAGE, HEAP_PAGES * PAGE}};
    for (uint64_t bin = 0; bin < 127; bin++) {
        const uint64_t links = STATE + BINS_AT + bin * 16;
        *word_at(drawn, links) = links - 16;
        *word_at(drawn, links + 8) = links - 16;
    }
    const uint64_t head = STATE + BINS_AT + UINT64_C(30) * 16 - 16;
    uint64_t before = head;
    for (uint64_t i = 0; i < DRAWN_CHUNKS; i++) {
        const uint64_t chunk = CHUNKS + i * 2 * CHUNK_BYTES;
        *word_at(drawn, chunk + 8) = CHUNK_BYTES | 5;
        *word_at(drawn, chunk + 24) = before;
        *word_at(drawn, before + 16) = chunk;
        before = chunk;
    }
    *word_at(drawn, before + 16) = head;
    *word_at(drawn, head + 24) = before;
    const uint64_t top = CHUNKS + UINT64_C(2) * DRAWN_CHUNKS * CHUNK_BYTES;
    *word_at(drawn, STATE + 96) = top;
    *word_at(drawn, top + 8) = (HEAP + HEAP_PAGES * PAGE - top) | 1;
    *word_at(drawn, STATE + 2160) = STATE; // no other arena
    *word_at(drawn, STATE + 2184) = HEAP_PAGES * PAGE;
    drawn->blocks[1] = 4 * PAGE | 2;
    drawn->blocks[4 * PAGE / sizeof(uint64_t) + 1] = 2 * PAGE | 2;
}

static void draw_map(struct memory_areas *out)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    strbuf_append_text(&text, "8000000-8008000 rw-p 00000000 00:00 0\nRss: 32 kB\n"
                              "8008000-c000000 ---p 00000000 00:00 0\nRss: 0 kB\n"
                              "20000000-20006000 rw-p 00000000 00:00 0\nRss: 24 kB\n");
    assert_int_equal(memory_areas_parse(&text, out), ERR_OK);
}

static void
read_with_tops(struct drawn *drawn, const struct u64_vec *tops, struct foreign_heap *out)
{
    CLEANUP(memory_areas_release) struct memory_areas map = {0};
    draw_map(&map);
    const struct memory_source memory = {.read = read_drawn, .context = drawn};
    assert_int_equal(glibc_heap_read(&map, &memory, tops, out), ERR_OK);
}

static void read_map(struct drawn *drawn, struct foreign_heap *out)
{
    read_with_tops(drawn, &(struct u64_vec){0}, out);
}

static void check(const struct foreign_heap *heap)
{
    uint64_t end = 0;
    for (size_t i = 0; i < heap->claims.len; i++) {
        const struct address_range *range = &heap->claims.items[i].range;
        assert_true(range->start >= end && range->end > range->start);
        assert_true((range->start >= HEAP && range->end <= HEAP + HEAP_PAGES * PAGE) ||
                    (range->start >= BLOCKS && range->end <= BLOCKS + BLOCK_PAGES * PAGE));
        end = range->end;
    }
    end = 0;
    for (size_t i = 0; i < heap->free.len; i++) {
        const struct address_range *range = heap->free.items + i;
        assert_true(range->start >= HEAP && range->start > end);
        assert_true(range->end > range->start && range->end <= HEAP + HEAP_PAGES * PAGE);
        end = range->end;
    }
}

static void a_drawn_arena_is_read(void **state)
{
    (void)state;
    static struct drawn drawn;
    CLEANUP(foreign_heap_release) struct foreign_heap heap = {0};
    draw(&drawn);
    read_map(&drawn, &heap);
    check(&heap);
    assert_true(heap.is_whole);
    assert_int_equal(sum_of_claims(&heap, HEAP_CLAIM_CHUNKS), HEAP_PAGES * PAGE);
    assert_int_equal(sum_of_claims(&heap, HEAP_CLAIM_BLOCKS), BLOCK_PAGES * PAGE);
    const uint64_t top = CHUNKS + UINT64_C(2) * DRAWN_CHUNKS * CHUNK_BYTES;
    assert_int_equal(heap.free.len, DRAWN_CHUNKS + 1);
    assert_int_equal(sum_of_free(&heap),
                     UINT64_C(1) * DRAWN_CHUNKS * CHUNK_BYTES + HEAP + HEAP_PAGES * PAGE - top);
}

// Blocks are behind the last stack of their area, whatever stacks are elsewhere.
// A top that is in no heap is none.
static void tops_alone_are_read(void **state)
{
    (void)state;
    static struct drawn drawn;
    for (unsigned i = 0; i < 2; i++) {
        CLEANUP(foreign_heap_release) struct foreign_heap heap = {0};
        CLEANUP(memory_areas_release) struct memory_areas map = {0};
        draw_map(&map);
        draw(&drawn);
        const uint64_t top = *word_at(&drawn, STATE + 96);
        *word_at(&drawn, STATE + 96) = i == 0 ? top : 0x123;
        const struct memory_source memory = {.read = read_drawn, .context = &drawn};
        assert_int_equal(glibc_heap_read_tops(&map, &memory, &heap), ERR_OK);
        assert_int_equal(heap.knows_tops, i == 0);
        assert_int_equal(heap.tops.len, i == 0 ? 1 : 0);
        assert_true(heap.tops.len == 0 || heap.tops.items[0] == top);
        assert_int_equal(heap.claims.len, 0);
    }
}

static void blocks_behind_stacks_are_found(void **state)
{
    (void)state;
    static struct drawn drawn;
    static const struct {
        uint64_t tops[4]; // by address
        uint64_t first_page;
        uint64_t pages; // of the blocks
    } cases[] = {
        {{HEAP - PAGE, BLOCKS - PAGE, BLOCKS, BLOCKS + 9 * PAGE}, 0, BLOCK_PAGES},
        {{HEAP, BLOCKS + PAGE, BLOCKS + 4 * PAGE, BLOCKS + BLOCK_PAGES * PAGE}, 4, 2},
        {{BLOCKS + 4 * PAGE, UINT64_MAX - 2, UINT64_MAX - 1, UINT64_MAX}, 4, 2},
        {{HEAP, BLOCKS - 1, BLOCKS + PAGE, UINT64_MAX}, 0, 0}, // what begins there is no block
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(foreign_heap_release) struct foreign_heap heap = {0};
        CLEANUP(u64_vec_release) struct u64_vec tops = {0};
        for (size_t k = 0; k < ARRAY_LEN(cases[i].tops); k++) {
            assert_int_equal(u64_vec_push(&tops, cases[i].tops[k]), ERR_OK);
        }
        draw(&drawn);
        read_with_tops(&drawn, &tops, &heap);
        check(&heap);
        assert_int_equal(sum_of_claims(&heap, HEAP_CLAIM_BLOCKS), cases[i].pages * PAGE);
        const struct heap_claim *last = heap.claims.items + heap.claims.len - 1;
        assert_true(cases[i].pages == 0 ||
                    last->range.start == BLOCKS + cases[i].first_page * PAGE);
    }
}

// The program writes there at any time, and may lie.
static void overwritten_arenas_are_bounded(void **state)
{
    (void)state;
    static struct drawn drawn;
    unsigned random = 7;
    size_t whole = 0;
    for (size_t i = 0; i < CHANGES; i++) {
        CLEANUP(foreign_heap_release) struct foreign_heap heap = {0};
        draw(&drawn);
        for (unsigned k = 0; k < 1 + i % 3; k++) {
            random = random * 1103515245u + 12345u;
            const size_t at = (random >> 8) % (i % 2 == 0 ? 400 : ARRAY_LEN(drawn.heap));
            random = random * 1103515245u + 12345u;
            const uint64_t values[] = {0,
                                       UINT64_MAX,
                                       random,
                                       HEAP + (random >> 8) % (1u << 15),
                                       CHUNKS + UINT64_C(1) * ((random >> 8) % 32) * CHUNK_BYTES,
                                       STATE,
                                       drawn.heap[at] ^ UINT64_C(1) << random % 64};
            drawn.heap[at] = values[(random >> 20) % ARRAY_LEN(values)];
        }
        read_map(&drawn, &heap);
        check(&heap);
        whole += heap.is_whole && heap.free.len > 0;
    }
    assert_true(whole > 0 && whole < CHANGES);
}

int main(void)
{
    g_page_bits = 12; // addresses here are drawn so, whatever this kernel has
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heaps_are_as_glibc_says),
        cmocka_unit_test(a_drawn_arena_is_read),
        cmocka_unit_test(tops_alone_are_read),
        cmocka_unit_test(blocks_behind_stacks_are_found),
        cmocka_unit_test(overwritten_arenas_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
