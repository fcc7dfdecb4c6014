// SPDX-License-Identifier: MIT
// rss_split on drawn memory maps: cuts, shares and sums, and hostile or unusual maps.
#include "recorder/memory/rss_split.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "recorder/memory/test_support/test_rss_split.h"

static void every_area_has_an_owner(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "100000-101000 r-xp 00000000 fe:00 1   /usr/bin/program\nRss: 4 kB\n"
                     "101000-103000 rw-p 00001000 fe:00 1   /usr/bin/program\nRss: 8 kB\n"
                     "103000-104000 rw-p 00000000 00:00 0\nRss: 4 kB\n" // .bss
                     "200000-240000 rw-p 00000000 00:00 0   [heap]\nRss: 128 kB\n"
                     "4000000-4010000 rw-p 00000000 00:00 0\nRss: 64 kB\n" // an arena: 64 MiB
                     "4010000-8000000 ---p 00000000 00:00 0\nRss: 0 kB\n"
                     "9000000-9001000 ---p 00000000 00:00 0\nRss: 0 kB\n"
                     "9001000-9801000 rw-p 00000000 00:00 0\nRss: 12 kB\n" // a stack and its guard
                     "a000000-a010000 rw-s 00000000 00:01 5   /dev/zero (deleted)\nRss: 16 kB\n"
                     "b000000-b010000 rw-p 00000000 00:00 0\nRss: 24 kB\nSwap: 8 kB\n" // mapped
                     "c000000-c002000 rw-s 00000000 00:01 9   /memfd:cairn-session (deleted)\n"
                     "Rss: 8 kB\n"
                     "c002000-c003000 r-xp 00000000 fe:00 2   /lib/cairn/libcairn_preload.so\n"
                     "Rss: 4 kB\n"
                     "c003000-c004000 rw-p 00000000 00:00 0\nRss: 4 kB\n" // its .bss
                     "d000000-d001000 rw-p 00000000 00:00 0\nRss: 4 kB\n" // unknown
                     "7ff000000000-7ff000010000 rw-p 00000000 00:00 0   [stack]\nRss: 20 kB\n"
                     "7ff000020000-7ff000022000 r-xp 00000000 00:00 0   [vdso]\nRss: 4 kB\n");
    map_range(&f, 0xb000000, 16, WIRE_MAPPING_ANONYMOUS);
    assert_int_equal(u64_vec_push(&f.pointers, 0x97ffff0), ERR_OK);
    split(&f);
    assert_int_equal(f.snapshot.file_bytes, 16 * 1024 + 4096); // with .bss and vdso
    assert_int_equal(f.snapshot.kept_bytes, (128 + 64) * 1024);
    assert_int_equal(f.snapshot.stack_bytes, (12 + 20) * 1024);
    assert_int_equal(f.snapshot.shared_bytes, 16 * 1024);
    assert_int_equal(f.snapshot.mapped_bytes, 24 * 1024);
    assert_int_equal(f.snapshot.swap_bytes, 8 * 1024);
    assert_int_equal(f.snapshot.own_bytes, 16 * 1024);
    assert_int_equal(f.snapshot.rest_bytes, 4 * 1024);
    assert_int_equal(f.snapshot.flags & REC_SNAPSHOT_ESTIMATED, 0);
    close_fixture(&f);
}

// The kernel made one area of: a mapping of the program, a block of malloc that has a mapping of
// its own, memory of cairn, and a thread's stack, from low to high addresses: 16 pages each.
static void one_area_may_have_many_owners(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "5000000-5040000 rw-p 00000000 00:00 0\nRss: 224 kB\n");
    map_range(&f, 0x5000000, 16, WIRE_MAPPING_ANONYMOUS);
    assert_int_equal(address_range_vec_push(
                         &f.own, (struct address_range){.start = 0x5020000, .end = 0x5030000}),
                     ERR_OK);
    f.absent_from = 0x5000000; // half of the program's mapping was never touched
    f.absent_to = 0x5008000;
    allocate(&f, 0x5010010, 15 * PAGE);
    split(&f);
    assert_int_equal(f.snapshot.mapped_bytes, 8 * PAGE);
    assert_int_equal(f.snapshot.own_bytes, 16 * PAGE);
    assert_int_equal(f.snapshot.live_bytes, 15 * PAGE);
    assert_int_equal(f.snapshot.rounding_bytes, 16); // too small for a mapping of its own
    assert_int_equal(f.snapshot.kept_bytes, PAGE - 16);
    assert_int_equal(f.snapshot.rest_bytes, 16 * PAGE); // the stack, which has no claim
    assert_int_equal(f.snapshot.rss_bytes, 224 * 1024);
    close_fixture(&f);
}

// Neighbours with one owner are one piece, neighbours of two areas are not.
static void neighbours_of_one_owner_are_one_piece(void **state)
{
    (void)state;
    static const struct {
        uint64_t start;
        uint64_t end;
        bool is_own;
    } wanted[] = {
        {0x5000000, 0x5004000, false}, {0x5004000, 0x500c000, true},  {0x500c000, 0x5010000, false},
        {0x5010000, 0x5014000, true},  {0x5014000, 0x5020000, false},
    };
    struct fixture f;
    open_fixture(&f, "5000000-5010000 rw-p 00000000 00:00 0\nRss: 64 kB\n"
                     "5010000-5020000 rw-p 00000000 00:00 0\nRss: 64 kB\n");
    static const struct address_range own[] = {
        {0x5004000, 0x5006000}, {0x5006000, 0x500c000}, {0x5010000, 0x5014000}};
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        assert_int_equal(address_range_vec_push(&f.own, own[i]), ERR_OK);
    }
    const struct rss_process what = {.aggregator = &f.aggregator,
                                     .process = f.process,
                                     .listed = &f.listed,
                                     .own = &f.own,
                                     .stack_tops = &f.tops,
                                     .stack_pointers = &f.pointers};
    CLEANUP(rss_piece_vec_release) struct rss_piece_vec pieces = {0};
    assert_int_equal(rss_pieces_cut(&what, &f.map, &pieces), ERR_OK);
    assert_int_equal(pieces.len, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_int_equal(pieces.items[i].start, wanted[i].start);
        assert_int_equal(pieces.items[i].end, wanted[i].end);
        assert_int_equal(pieces.items[i].kind == REC_PART_OWN, wanted[i].is_own);
        assert_int_equal(pieces.items[i].area, wanted[i].start >= 0x5010000);
    }
    close_fixture(&f);
}

static void a_known_stack_is_cut_out(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "5000000-5020000 rw-p 00000000 00:00 0\nRss: 128 kB\n");
    assert_int_equal(u64_vec_push(&f.tops, 0x5010000), ERR_OK);
    map_range(&f, 0x5010000, 16, WIRE_MAPPING_ANONYMOUS); // merged with it by the kernel
    split(&f);
    assert_int_equal(f.snapshot.stack_bytes, 16 * PAGE);
    assert_int_equal(f.snapshot.mapped_bytes, 16 * PAGE);
    close_fixture(&f);
}

// glibc maps large blocks where the address space has room, also behind the unused tail of an
// arena. Garbage collectors and JavaScript's engines have guards, too.
static void only_a_thread_behind_a_guard_makes_a_stack(void **state)
{
    (void)state;
    static const uint64_t pointers[] = {0x7e00000, 0x9001000, 0xa001000, 0xb800fff, 0xc001000};
    struct fixture f;
    open_fixture(&f, "4010000-7e00000 ---p 00000000 00:00 0\nRss: 0 kB\n"    // an arena's tail
                     "7e00000-8000000 rw-p 00000000 00:00 0\nRss: 2048 kB\n" // and a block
                     "9000000-9001000 ---p 00000000 00:00 0\nRss: 0 kB\n"    // a guard
                     "9001000-9a01000 rw-p 00000000 00:00 0\nRss: 64 kB\n"   // before too much
                     "a000000-a001000 ---p 00000000 00:00 0\nRss: 0 kB\n"
                     "a001000-a801000 rw-p 00000000 00:00 0\nRss: 12 kB\n" // a stack
                     "b000000-b001000 ---p 00000000 00:00 0\nRss: 0 kB\n"
                     "b001000-b801000 rw-p 00000000 00:00 0\nRss: 20 kB\n" // another
                     "c000000-c001000 ---p 00000000 00:00 0\nRss: 0 kB\n"
                     "c001000-c002000 rw-s 00000000 00:01 4   /dev/zero\nRss: 4 kB\n"
                     "d000000-d001000 ---p 00000000 00:00 0\nRss: 0 kB\n"
                     "d001000-d801000 rw-p 00000000 00:00 0\nRss: 512 kB\n"); // of no thread
    for (size_t i = 0; i < ARRAY_LEN(pointers); i++) {
        assert_int_equal(u64_vec_push(&f.pointers, pointers[i]), ERR_OK);
    }
    split(&f);
    assert_int_equal(f.snapshot.stack_bytes, (12 + 20) * 1024);
    assert_int_equal(f.snapshot.rest_bytes, (2048 + 64 + 512) * 1024);
    close_fixture(&f);
}

static void live_is_what_is_resident_of_what_was_asked_for(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "200000-300000 rw-p 00000000 00:00 0   [heap]\nRss: 768 kB\n");
    f.absent_from = 0x280000; // a quarter
    f.absent_to = 0x2c0000;
    allocate(&f, 0x200010, 100);      // 112 with its header
    allocate(&f, 0x200080, 24);       // 32
    allocate(&f, 0x27f000, 3 * PAGE); // two of its pages are not resident
    split(&f);
    assert_int_equal(f.snapshot.requested_bytes, 124 + 3 * PAGE);
    assert_int_equal(f.snapshot.live_bytes, 124 + PAGE);
    // the end of the last one is not resident
    assert_int_equal(f.snapshot.rounding_bytes, 112 + 32 - 124 + 8);
    assert_int_equal(f.snapshot.kept_bytes,
                     (768 << 10) - f.snapshot.live_bytes - f.snapshot.rounding_bytes);
    close_fixture(&f);
}

// It begins 16 bytes into its first page, and the rest of its last page belongs to it.
static void a_block_with_a_mapping_of_its_own_has_whole_pages(void **state)
{
    (void)state;
    static const struct {
        uint64_t size_bytes;
        uint64_t pages;
    } cases[] = {{200 * PAGE - 16, 200},
                 {200 * PAGE - 116, 200},
                 {199 * PAGE - 15, 200},
                 {199 * PAGE - 16, 199}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        open_fixture(&f, "5000000-5100000 rw-p 00000000 00:00 0\nRss: 1024 kB\n");
        allocate(&f, 0x5000010, cases[i].size_bytes);
        split(&f);
        assert_int_equal(f.snapshot.live_bytes, cases[i].size_bytes);
        assert_int_equal(f.snapshot.rounding_bytes, cases[i].pages * PAGE - cases[i].size_bytes);
        assert_int_equal(f.snapshot.kept_bytes, (256 - cases[i].pages) * PAGE);
        close_fixture(&f);
    }
}

// madvise and mprotect cut the mapping of a block into areas. What is no heap is none by a block
// that is said to reach into it.
static void a_block_is_live_in_all_areas_that_it_is_in(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "5000000-5001000 rw-p 00000000 00:00 0\nRss: 4 kB\n"
                     "5001000-50c0000 rw-p 00000000 00:00 0\nRss: 700 kB\n"
                     "50c0000-5100000 rw-p 00000000 00:00 0\nRss: 256 kB\n"
                     "5100000-5110000 rw-p 00000000 00:00 0\nRss: 64 kB\n"
                     "6000000-6080000 rw-p 00000000 00:00 0\nRss: 512 kB\n"
                     "6080000-6090000 rw-p 00000000 00:00 0\nRss: 64 kB\n"
                     "60a0000-60b0000 rw-p 00000000 00:00 0\nRss: 64 kB\n");
    map_range(&f, 0x6080000, 16, WIRE_MAPPING_ANONYMOUS);
    f.absent_from = 0x5010000;
    f.absent_to = 0x5020000;
    allocate(&f, 0x5000010, (256 * PAGE) - 16);
    allocate(&f, 0x6000010, 1 << 20); // its free was not seen, and the memory is used anew
    split(&f);
    assert_int_equal(f.snapshot.requested_bytes, (256 * PAGE) - 16 + (1 << 20));
    assert_int_equal(f.snapshot.live_bytes, (240 * PAGE) - 16 + (128 * PAGE) - 16);
    assert_int_equal(f.snapshot.rounding_bytes, 32);
    assert_int_equal(f.snapshot.mapped_bytes, 16 * PAGE);
    assert_int_equal(f.snapshot.rest_bytes, 32 * PAGE);
    assert_int_equal(f.snapshot.kept_bytes, 0);
    close_fixture(&f);
}

static void without_pages_the_heap_is_an_estimate_and_the_sum_is_not(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "200000-300000 rw-p 00000000 00:00 0   [heap]\nRss: 100 kB\n");
    f.has_pages = false;
    allocate(&f, 0x200010, 5000);
    allocate(&f, 0x210010, 500000); // more than the resident bytes
    split(&f);
    assert_int_equal(f.snapshot.flags, REC_SNAPSHOT_ESTIMATED);
    assert_int_equal(f.snapshot.live_bytes, 100 * 1024);
    assert_int_equal(f.snapshot.kept_bytes, 0);
    close_fixture(&f);
}

// The kernel's zero page: pages that share it are present, but the kernel does not count them.
static void shares_never_exceed_what_the_kernel_counts(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "200000-300000 rw-p 00000000 00:00 0   [heap]\nRss: 64 kB\n");
    allocate(&f, 0x200010, 512 << 10);
    split(&f);
    assert_int_equal(f.snapshot.rss_bytes, 64 << 10);
    assert_int_equal(f.snapshot.live_bytes, 32 << 10);
    close_fixture(&f);
}

// A page that was only read is not the allocator's, if the same area has other memory.
static void a_page_that_was_only_read_takes_nothing_from_the_heap(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "5000000-5020000 rw-p 00000000 00:00 0\nRss: 124 kB\n");
    map_range(&f, 0x5000000, 16, WIRE_MAPPING_ANONYMOUS);
    allocate(&f, 0x5010010, (16 * PAGE) - 16);
    split(&f);
    assert_int_equal(f.snapshot.live_bytes, (16 * PAGE) - 16);
    assert_int_equal(f.snapshot.mapped_bytes, 15 * PAGE);
    close_fixture(&f);
}

// A forked child's heap is its parent's: its free part is unknown.
static void what_is_not_known_is_not_called_free(void **state)
{
    (void)state;
    static const struct {
        uint32_t flags;
        const char *name;
    } cases[] = {{0, "[unrecorded heap]"},
                 {REC_PROCESS_FORKED, "[heap inherited over fork]"},
                 {REC_PROCESS_FORKED | REC_PROCESS_ATTACHED, "[heap inherited over fork]"},
                 {REC_PROCESS_ATTACHED, "[allocated before recording, or free]"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        open_fixture(&f, "200000-300000 rw-p 00000000 00:00 0   [heap]\nRss: 1024 kB\n");
        f.is_partial = true;
        f.process->record.flags = cases[i].flags;
        allocate(&f, 0x200010, 5000);
        split(&f);
        assert_int_equal(f.snapshot.live_bytes, 5000);
        assert_int_equal(f.snapshot.kept_bytes, 0);
        assert_int_equal(f.snapshot.rest_bytes, (1024 << 10) - 5000 - f.snapshot.rounding_bytes);
        const struct rec_part *rest = &f.tables.parts.items[f.tables.parts.len - 1];
        assert_int_equal(rest->kind, REC_PART_REST);
        assert_string_equal(string_table_get(&f.aggregator.strings, rest->path), cases[i].name);
        close_fixture(&f);
    }
}

// Live bytes are exact while the pages are known. Rounding and free memory follow from them, and
// are estimates.
static void estimates_are_reported(void **state)
{
    (void)state;
    for (uint32_t has_pages = 0; has_pages < 2; has_pages++) {
        struct fixture f;
        open_fixture(&f, "200000-300000 rw-p 00000000 00:00 0   [heap]\nRss: 1024 kB\nSwap: 8 kB\n"
                         "d000000-d001000 rw-p 00000000 00:00 0\nRss: 4 kB\n");
        f.has_pages = has_pages != 0;
        allocate(&f, 0x200010, 5000);
        split(&f);
        const struct {
            uint32_t kind;
            uint32_t is_estimate;
            uint64_t swap_bytes;
        } wanted[] = {
            {REC_PART_LIVE, !has_pages, 0},
            {REC_PART_ROUNDING, 1, 0},
            {REC_PART_KEPT, 1, 8 << 10},
            {REC_PART_REST, 0, 0},
        };
        assert_int_equal(f.tables.parts.len, ARRAY_LEN(wanted));
        for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
            assert_int_equal(f.tables.parts.items[i].kind, wanted[i].kind);
            assert_int_equal(f.tables.parts.items[i].is_estimate, wanted[i].is_estimate);
            assert_int_equal(f.tables.parts.items[i].swap_bytes, wanted[i].swap_bytes);
            assert_int_equal(f.tables.parts.items[i].areas, 1);
        }
        close_fixture(&f);
    }
}

static void blocks_that_a_program_makes_up_do_no_harm(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "200000-300000 rw-p 00000000 00:00 0   [heap]\nRss: 64 kB\n");
    static const struct {
        uint64_t address;
        uint64_t size_bytes;
    } blocks[] = {{8, 1},          {0x2ffff8, UINT64_MAX}, {0x200000, UINT64_MAX / 2},
                  {0x2fffff, 100}, {0x1ffff8, 1 << 20},    {0x200000, 0}};
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        allocate(&f, blocks[i].address, blocks[i].size_bytes);
    }
    split(&f);
    assert_int_equal(f.snapshot.rss_bytes, 64 << 10);
    close_fixture(&f);
}

// Random blocks, checked against a map of all bytes of the heap.
static void survivors_of_sparse_pages_are_found(void **state)
{
    (void)state;
    enum {
        HEAP = 0x200000,
        HEAP_PAGES = 2048,
        STACKS = 3,
    };
    static uint8_t is_taken[HEAP_PAGES * PAGE];
    for (unsigned seed = 1; seed <= 8; seed++) {
        struct fixture f;
        open_fixture(&f, "200000-a00000 rw-p 00000000 00:00 0   [heap]\nRss: 8192 kB\n");
        memset(is_taken, 0, sizeof(is_taken));
        unsigned random = seed;
        uint64_t at = 16;
        uint64_t blocks[STACKS] = {0};
        uint32_t rows[STACKS];
        for (uint32_t i = 0; i < STACKS; i++) {
            uint32_t frame;
            uint32_t node;
            assert_int_equal(
                stack_table_frame(&f.aggregator.stacks, REC_NONE, 0x1000 + i, 0, &frame), ERR_OK);
            assert_int_equal(stack_table_node(&f.aggregator.stacks, 0, frame, &node), ERR_OK);
            assert_int_equal(aggregator_row(&f.aggregator, &f.thread, node, &rows[i]), ERR_OK);
        }
        while (at < sizeof(is_taken) - 2 * PAGE) {
            random = random * 1103515245u + 12345u;
            const uint64_t size_bytes = 1 + (random >> 8) % (seed * 400);
            const uint64_t chunk =
                (size_bytes + 8 + 15) / 16 * 16 < 32 ? 32 : (size_bytes + 23) / 16 * 16;
            f.row = rows[random % STACKS];
            blocks[random % STACKS]++;
            allocate(&f, HEAP + at, size_bytes);
            memset(is_taken + at, 1, size_bytes);
            at += chunk + (uint64_t)16 * ((random >> 16) % (seed * 2000) / 16);
        }
        split(&f);
        uint64_t empty_pages = 0;
        uint64_t sparse_pages = 0;
        uint64_t sparse_bytes = 0;
        for (size_t page = 0; page < HEAP_PAGES; page++) {
            uint64_t fill = 0;
            for (size_t i = 0; i < PAGE; i++) {
                fill += is_taken[page * PAGE + i];
            }
            empty_pages += fill == 0;
            sparse_pages += fill > 0 && fill <= PAGE / 4;
            sparse_bytes += fill > 0 && fill <= PAGE / 4 ? fill : 0;
        }
        assert_int_equal(f.snapshot.empty_page_bytes, empty_pages * PAGE);
        assert_int_equal(f.snapshot.sparse_page_bytes, sparse_pages * PAGE);
        assert_int_equal(f.snapshot.sparse_block_bytes, sparse_bytes);
        uint64_t held_bytes = 0;
        uint64_t counted = 0;
        for (size_t i = 0; i < f.tables.survivors.len; i++) {
            held_bytes += f.tables.survivors.items[i].held_bytes;
            counted += f.tables.survivors.items[i].blocks;
        }
        const bool is_searched = sparse_pages * PAGE >= 1 << 20;
        assert_int_equal(f.tables.survivors.len, is_searched ? STACKS : 0);
        if (is_searched) {
            // A block's share is rounded down, on each of its pages.
            const uint64_t truth = sparse_pages * PAGE - sparse_bytes;
            assert_in_range(held_bytes, truth - 2 * counted, truth);
            assert_in_range(counted, 1, blocks[0] + blocks[1] + blocks[2]);
        }
        close_fixture(&f);
    }
}

// Of a heap of glibc: pages are kept by a block, by the head of a free chunk behind it, and by libc
// at the start. An arena for threads keeps its end, too, which is in its newest heap.
static void what_a_release_returns_is_counted(void **state)
{
    (void)state;
    static const struct {
        const char *map;
        uint64_t start;
        uint64_t pages;
        uint64_t released;
        bool knows_tops;
        uint64_t top; // 0: of another heap
    } cases[] = {
        // page 0: libc's; page 2: a block; page 5: a block up to 0x20 before its end, so that the
        // head of the free chunk behind it is on page 6
        {"200000-20a000 rw-p 00000000 00:00 0   [heap]\nRss: 40 kB\n", 0x200000, 10, 6, false, 0},
        {"8000000-800a000 rw-p 00000000 00:00 0\nRss: 40 kB\n", 0x8000000, 10, 3, false, 0},
        {"8000000-800a000 rw-p 00000000 00:00 0\nRss: 40 kB\n", 0x8000000, 10, 3, true, 0x8006000},
        {"8000000-800a000 rw-p 00000000 00:00 0\nRss: 40 kB\n", 0x8000000, 10, 4, true, 0x8008000},
        {"8000000-800a000 rw-p 00000000 00:00 0\nRss: 40 kB\n", 0x8000000, 10, 6, true, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        open_fixture(&f, cases[i].map);
        assert_int_equal(string_table_intern_text(&f.aggregator.strings, "/lib/libc.so.6", &f.libc),
                         ERR_OK);
        f.foreign.knows_tops = cases[i].knows_tops;
        assert_int_equal(
            u64_vec_push(&f.foreign.tops, cases[i].top != 0 ? cases[i].top : 0xc000100), ERR_OK);
        allocate(&f, cases[i].start + 2 * PAGE + 0x110, 200);
        allocate(&f, cases[i].start + 5 * PAGE + 0x10, PAGE - 0x28);
        split(&f);
        uint64_t released_bytes = 0;
        for (size_t k = 0; k < f.tables.parts.len; k++) {
            released_bytes += f.tables.parts.items[k].released_bytes;
        }
        assert_int_equal(released_bytes / PAGE, cases[i].released);
        assert_int_equal(f.snapshot.flags & REC_SNAPSHOT_RELEASED, REC_SNAPSHOT_RELEASED);
        assert_int_equal(f.snapshot.empty_page_bytes, 8 * PAGE);
        close_fixture(&f);
    }
}

// Which pages are empty or sparse is known only while both the pages and all blocks are.
static void sparse_pages_are_known_or_not_stated(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        const bool has_pages = (i & 1) != 0;
        const bool is_partial = (i & 2) != 0;
        struct fixture f;
        open_fixture(&f, "200000-600000 rw-p 00000000 00:00 0   [heap]\nRss: 4096 kB\n");
        f.has_pages = has_pages;
        f.is_partial = is_partial;
        for (uint64_t at = 0x200010; at < 0x400000; at += PAGE) {
            allocate(&f, at, 64);
        }
        split(&f);
        const bool is_known = has_pages && !is_partial;
        assert_int_equal(f.snapshot.sparse_page_bytes, is_known ? 2 << 20 : 0);
        assert_int_equal(f.snapshot.sparse_block_bytes, is_known ? 512 * 64 : 0);
        assert_int_equal(f.snapshot.empty_page_bytes, is_known ? 2 << 20 : 0);
        assert_int_equal(f.tables.survivors.len, is_known ? 1 : 0);
        close_fixture(&f);
    }
}

// Append an area of the map with a drawn part of it in memory.
static uint64_t
draw_area(struct strbuf *map, unsigned *random, uint64_t start, unsigned pages, const char *rest)
{
    const uint64_t resident = draw_below(random, 3) == 0 ? pages : draw_below(random, pages + 1);
    strbuf_printf(map, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 %s\nRss: %" PRIu64 " kB\n", start,
                  start + pages * PAGE, rest, resident * PAGE / 1024);
    return resident * PAGE;
}

// Whatever the map, the blocks and the pages: the parts add up to what the kernel counts, and no
// part has more in memory than it is large.
static void parts_add_up_and_fit(void **state)
{
    (void)state;
    enum {
        HEAP = 0x200000,
        ARENA = 0x5000000,
        SEEDS = 300,
    };
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        unsigned random = seed * 2654435761u;
        struct fixture f;
        CLEANUP(strbuf_release) struct strbuf map = {0};
        const unsigned heap_pages = 1 + draw_below(&random, 64);
        const unsigned arena_pages = 48 + draw_below(&random, 64);
        uint64_t rss_bytes = draw_area(&map, &random, HEAP, heap_pages, "00:00 0   [heap]");
        rss_bytes += draw_area(&map, &random, ARENA, arena_pages, "00:00 0");
        rss_bytes += draw_area(&map, &random, 0x9000000, 8, "fe:00 1   /usr/bin/program");
        open_fixture(&f, strbuf_text(&map));
        f.has_pages = draw_below(&random, 4) != 0;
        f.is_partial = draw_below(&random, 4) == 0;
        f.absent_from =
            (draw_below(&random, 2) == 0 ? HEAP : ARENA) + PAGE * draw_below(&random, 32);
        f.absent_to = f.absent_from + PAGE * draw_below(&random, 32);
        for (unsigned i = draw_below(&random, 4); i > 0;
             i--) { // from low to high, within the arena
            map_range(&f, ARENA + PAGE * 16 * i - PAGE * draw_below(&random, 8),
                      1 + draw_below(&random, 8), WIRE_MAPPING_ANONYMOUS);
        }
        if (draw_below(&random, 2) == 0) {
            const struct address_range own = {.start = ARENA + 4 * PAGE, .end = ARENA + 7 * PAGE};
            assert_int_equal(address_range_vec_push(&f.own, own), ERR_OK);
        }
        const unsigned size_limit = 1 + draw_below(&random, 20000);
        for (uint64_t at = HEAP + 16;;) {
            const uint64_t size_bytes = 1 + draw_below(&random, size_limit);
            if (at + size_bytes > HEAP + heap_pages * PAGE) {
                break;
            }
            allocate(&f, at, size_bytes);
            at += (size_bytes + 8 + 31) / 16 * 16 + (uint64_t)16 * draw_below(&random, size_limit);
        }
        split(&f);
        assert_int_equal(f.snapshot.rss_bytes, rss_bytes);
        uint64_t sum_bytes = 0;
        for (size_t i = 0; i < f.tables.parts.len; i++) {
            const struct rec_part *part = &f.tables.parts.items[i];
            if (part->rss_bytes > part->virtual_bytes) {
                fail_msg("seed %u: part %zu of kind %u: %" PRIu64 " of %" PRIu64 " bytes", seed, i,
                         part->kind, part->rss_bytes, part->virtual_bytes);
            }
            sum_bytes += part->rss_bytes;
        }
        assert_int_equal(sum_bytes, rss_bytes);
        close_fixture(&f);
    }
}

static void a_map_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Rss: 4 kB\n",
        "hello\n",
        "5000-4000 rw-p 0 0:0 0\n",
        "\n",
        "5000- rw-p 0 0:0 0 x",
        "-\n",
        "5000-8000 rw-p 0 0:0 0\n6000-7000 rw-p 0 0:0 0\n",
        "5000-5800 rw-p 0 0:0 0\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        CLEANUP(memory_areas_release) struct memory_areas map = {0};
        strbuf_append_text(&text, texts[i]);
        assert_int_equal(memory_areas_parse(&text, &map), ERR_CORRUPT);
    }
}

static void of_a_map_that_changes_while_it_is_read_the_later_line_holds(void **state)
{
    (void)state;
    static const char changed[] = "1000-2000 rw-p 0 0:0 0\nRss: 4 kB\n"
                                  "5000-9000 rw-p 0 0:0 0\nRss: 16 kB\n"
                                  "8000-a000 rw-p 0 0:0 0\nRss: 8 kB\n" // begins inside
                                  "b000-c000 rw-p 0 0:0 0\nRss: 4 kB\n"
                                  "d000-e000 rw-p 0 0:0 0\nRss: 4 kB\n"
                                  "b000-f000 rw-p 0 0:0 0\nRss: 12 kB\n"; // joined what was two
    static const struct {
        uint64_t start, end, rss_bytes;
    } expected[] = {
        {0x1000, 0x2000, 0x1000},
        {0x5000, 0x8000, 0x3000},
        {0x8000, 0xa000, 0x2000},
        {0xb000, 0xf000, 0x3000},
    };
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(memory_areas_release) struct memory_areas map = {0};
    strbuf_append_text(&text, changed);
    assert_int_equal(memory_areas_parse(&text, &map), ERR_OK);
    assert_int_equal(map.areas.len, ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        assert_int_equal(map.areas.items[i].start, expected[i].start);
        assert_int_equal(map.areas.items[i].end, expected[i].end);
        assert_int_equal(map.areas.items[i].rss_bytes, expected[i].rss_bytes);
    }
}

static void no_area_has_more_in_memory_than_it_is_large(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(memory_areas_release) struct memory_areas map = {0};
    strbuf_append_text(&text, "5000-7000 rw-p 0 0:0 0\nRss: 7 kB\nRss: 18014398509481984 kB\n"
                              "Swap: 99999999999999999999999 kB\n");
    assert_int_equal(memory_areas_parse(&text, &map), ERR_OK);
    assert_int_equal(map.areas.items[0].rss_bytes, 0x2000);
    assert_int_equal(map.areas.items[0].swap_bytes, 0x2000);
}

static void names_are_taken_as_they_are(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(memory_areas_release) struct memory_areas map = {0};
    strbuf_append_text(&text, "1000-3000 r--s 00000000 fe:00 12345   /tmp/a b  \\012c (deleted)\n"
                              "Size: 8 kB\nRss:    8 kB\nSwap: 1 kB\nVmFlags: rd mr\n"
                              "7fff00000000-7fff00001000 ---p 00000000 00:00 0 \nRss: 0 kB");
    assert_int_equal(memory_areas_parse(&text, &map), ERR_OK);
    assert_int_equal(map.areas.len, 2);
    const struct memory_area *area = map.areas.items;
    assert_string_equal(memory_area_path(&map, area), "/tmp/a b  \\012c (deleted)");
    assert_int_equal(area->rss_bytes, 8192);
    assert_int_equal(area->swap_bytes, 1024);
    assert_true(area->is_shared && area->is_accessible);
    assert_string_equal(memory_area_path(&map, area + 1), "");
    assert_false(area[1].is_accessible || area[1].is_shared);
}

static rec_string intern(struct fixture *f, const char *text)
{
    rec_string id = 0;
    assert_int_equal(string_table_intern_text(&f->aggregator.strings, text, &id), ERR_OK);
    return id;
}

// What an allocator that is a library maps is its own; an executable maps for other reasons, too.
static void what_the_allocator_maps_is_kept_by_it(void **state)
{
    (void)state;
    static const struct {
        const char *mapper; // module of the innermost frame; NULL: of no module
        const char *allocator;
        const char *executable;
        bool is_kept;
    } cases[] = {
        {"/lib/libjemalloc.so", "/lib/libjemalloc.so", "/bin/program", true},
        {"/lib/libother.so", "/lib/libjemalloc.so", "/bin/program", false},
        {"/bin/program", "/bin/program", "/bin/program", false},
        {"/bin/program", "/lib/libjemalloc.so", "/bin/program", false},
        {"", "", "/bin/program", false},
        {NULL, "", "/bin/program", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        open_fixture(&f, "b000000-b010000 rw-p 00000000 00:00 0\nRss: 24 kB\n");
        f.process->record.allocator = intern(&f, cases[i].allocator);
        f.process->record.executable = intern(&f, cases[i].executable);
        uint32_t module = REC_NONE;
        uint32_t frame = 0;
        uint32_t node = 0;
        if (cases[i].mapper != NULL) {
            const struct bytes path = {.data = (const uint8_t *)cases[i].mapper,
                                       .len = strlen(cases[i].mapper)};
            assert_int_equal(
                stack_table_module(&f.aggregator.stacks, path, (struct bytes){0}, &module), ERR_OK);
        }
        assert_int_equal(stack_table_frame(&f.aggregator.stacks, module, 16, 0, &frame), ERR_OK);
        assert_int_equal(stack_table_node(&f.aggregator.stacks, 0, frame, &node), ERR_OK);
        const struct wire_mapping change = {.address = 0xb000000,
                                            .size_bytes = 16 * PAGE,
                                            .number = 1,
                                            .kind = WIRE_MAPPING_ANONYMOUS};
        assert_int_equal(aggregator_mapping(&f.aggregator, f.process, &change, node), ERR_OK);
        split(&f);
        print_message("case %zu\n", i);
        assert_int_equal(f.snapshot.kept_bytes, cases[i].is_kept ? 24 * 1024 : 0);
        assert_int_equal(f.snapshot.mapped_bytes, cases[i].is_kept ? 0 : 24 * 1024);
        close_fixture(&f);
    }
}

// No block is in it.
static void what_an_allocator_mapped_is_kept(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "b000000-b010000 rw-p 00000000 00:00 0\nRss: 24 kB\n");
    const struct wire_mapping change = {
        .address = 0xb000000, .size_bytes = 16 * PAGE, .number = 1, .kind = WIRE_MAPPING_HEAP};
    assert_int_equal(aggregator_mapping(&f.aggregator, f.process, &change, 0), ERR_OK);
    split(&f);
    assert_int_equal(f.snapshot.kept_bytes, 24 * 1024);
    assert_int_equal(f.snapshot.mapped_bytes + f.snapshot.rest_bytes, 0);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_area_has_an_owner),
        cmocka_unit_test(what_an_allocator_mapped_is_kept),
        cmocka_unit_test(one_area_may_have_many_owners),
        cmocka_unit_test(neighbours_of_one_owner_are_one_piece),
        cmocka_unit_test(a_known_stack_is_cut_out),
        cmocka_unit_test(only_a_thread_behind_a_guard_makes_a_stack),
        cmocka_unit_test(live_is_what_is_resident_of_what_was_asked_for),
        cmocka_unit_test(a_block_with_a_mapping_of_its_own_has_whole_pages),
        cmocka_unit_test(a_block_is_live_in_all_areas_that_it_is_in),
        cmocka_unit_test(without_pages_the_heap_is_an_estimate_and_the_sum_is_not),
        cmocka_unit_test(shares_never_exceed_what_the_kernel_counts),
        cmocka_unit_test(a_page_that_was_only_read_takes_nothing_from_the_heap),
        cmocka_unit_test(what_is_not_known_is_not_called_free),
        cmocka_unit_test(estimates_are_reported),
        cmocka_unit_test(blocks_that_a_program_makes_up_do_no_harm),
        cmocka_unit_test(survivors_of_sparse_pages_are_found),
        cmocka_unit_test(what_a_release_returns_is_counted),
        cmocka_unit_test(sparse_pages_are_known_or_not_stated),
        cmocka_unit_test(parts_add_up_and_fit),
        cmocka_unit_test(a_map_that_is_none_is_refused),
        cmocka_unit_test(of_a_map_that_changes_while_it_is_read_the_later_line_holds),
        cmocka_unit_test(no_area_has_more_in_memory_than_it_is_large),
        cmocka_unit_test(names_are_taken_as_they_are),
        cmocka_unit_test(what_the_allocator_maps_is_kept_by_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
