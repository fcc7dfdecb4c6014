// SPDX-License-Identifier: MIT
// The parts that rss_split makes: by a naive reader of each byte, merged, shared, and appended.
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregate/books/listed_walk.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "recorder/memory/test_support/test_rss_split.h"

// What a heap has, byte by byte.
struct naive_heap {
    uint64_t start;
    uint64_t pages;
    uint64_t requested_bytes;
    uint64_t extent_bytes;
    uint64_t live_bytes;     // of blocks, on resident pages
    uint64_t occupied_bytes; // of blocks with their headers, there
    uint64_t resident_bytes;
};

static bool is_resident(const struct fixture *f, uint64_t address)
{
    return (f->resident >> address / PAGE % 64 & 1) != 0;
}

static void
draw_blocks(struct fixture *f, unsigned *random, struct naive_heap *heap, uint64_t first)
{
    const uint64_t end = heap->start + heap->pages * PAGE;
    for (uint64_t page = 0; page < heap->pages; page++) {
        heap->resident_bytes += is_resident(f, heap->start + page * PAGE) ? PAGE : 0;
    }
    for (uint64_t at = first;;) {
        const uint64_t size_bytes = draw_below(random, 3 * PAGE);
        const uint64_t extent_bytes = size_bytes < 24 ? 32 : (size_bytes + 8 + 15) / 16 * 16;
        if (at + extent_bytes > end) {
            break;
        }
        allocate(f, at, size_bytes);
        heap->requested_bytes += size_bytes;
        heap->extent_bytes += extent_bytes;
        for (uint64_t byte = max_u64(at - 8, heap->start); byte < at - 8 + extent_bytes; byte++) {
            const bool is_of_block = byte >= at && byte < at + size_bytes;
            heap->live_bytes += is_resident(f, byte) && is_of_block;
            heap->occupied_bytes += is_resident(f, byte);
        }
        at += extent_bytes + (uint64_t)16 * draw_below(random, 500);
    }
}

static void expect_heap(const struct fixture *f, const struct naive_heap *heap, const char *path)
{
    const struct rec_part wanted[] = {
        {.kind = REC_PART_LIVE,
         .virtual_bytes = heap->requested_bytes,
         .rss_bytes = heap->live_bytes},
        {.kind = REC_PART_ROUNDING,
         .virtual_bytes = heap->extent_bytes - heap->requested_bytes,
         .rss_bytes = heap->occupied_bytes - heap->live_bytes},
        {.kind = REC_PART_KEPT,
         .virtual_bytes = heap->pages * PAGE - heap->extent_bytes,
         .rss_bytes = heap->resident_bytes - heap->occupied_bytes},
    };
    size_t found = 0;
    for (size_t i = 0; i < f->tables.parts.len; i++) {
        const struct rec_part *part = &f->tables.parts.items[i];
        for (size_t k = 0; k < ARRAY_LEN(wanted); k++) {
            if (part->kind == wanted[k].kind &&
                strcmp(string_table_get(&f->aggregator.strings, part->path), path) == 0) {
                assert_int_equal(part->virtual_bytes, wanted[k].virtual_bytes);
                assert_int_equal(part->rss_bytes, wanted[k].rss_bytes);
                found++;
            }
        }
    }
    assert_int_equal(found, ARRAY_LEN(wanted));
}

// While the kernel counts the pages that are there, each byte is in the part that a naive reader
// gives it. Blocks outside of all areas count nowhere.
static void each_byte_is_in_the_part_of_its_block(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 60; seed++) {
        unsigned random = seed * 2654435761u;
        struct naive_heap heap = {.start = 0x200000, .pages = 20 + draw_below(&random, 20)};
        struct naive_heap arena = {.start = 0x8000000, .pages = 20 + draw_below(&random, 20)};
        uint64_t resident = 0;
        for (unsigned i = 0; i < 64; i++) { // the first page, and not all of each heap
            const bool is_there = i != 9 && (i == 0 || draw_below(&random, 4) != 0);
            resident |= (uint64_t)is_there << i;
        }
        struct naive_heap *const both[] = {&heap, &arena};
        CLEANUP(strbuf_release) struct strbuf map = {0};
        for (size_t i = 0; i < ARRAY_LEN(both); i++) {
            const uint64_t mask = ((uint64_t)1 << both[i]->pages) - 1; // both begin at a 64th page
            strbuf_printf(&map, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 %s\nRss: %d kB\n",
                          both[i]->start, both[i]->start + both[i]->pages * PAGE,
                          i == 0 ? "  [heap]" : "", 4 * __builtin_popcountll(resident & mask));
        }
        struct fixture f;
        open_fixture(&f, strbuf_text(&map));
        f.resident = resident;
        draw_blocks(&f, &random, &heap, heap.start + 16);
        draw_blocks(&f, &random, &arena, arena.start); // its header is not there
        allocate(&f, heap.start - PAGE, 100);
        allocate(&f, heap.start + heap.pages * PAGE, 200);
        allocate(&f, arena.start - 1, 300);
        allocate(&f, arena.start + arena.pages * PAGE, 400);
        split(&f);
        expect_heap(&f, &heap, "[heap]");
        expect_heap(&f, &arena, "");
        assert_int_equal(f.snapshot.requested_bytes, heap.requested_bytes + arena.requested_bytes);
        assert_int_equal(f.snapshot.flags & REC_SNAPSHOT_ESTIMATED, 0);
        close_fixture(&f);
    }
}

static const struct rec_part *part_of(const struct fixture *f, uint32_t kind)
{
    const struct rec_part *found = NULL;
    for (size_t i = 0; i < f->tables.parts.len; i++) {
        if (f->tables.parts.items[i].kind == kind) {
            assert_null(found);
            found = f->tables.parts.items + i;
        }
    }
    return found;
}

// Areas of one name, kind and stack make one part; what has no pages is a part only where that says
// something.
static void parts_of_one_owner_are_one(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "4000000-4010000 rw-p 00000000 00:00 0\nRss: 64 kB\nSwap: 4 kB\n"
                     "8000000-8010000 rw-p 00000000 00:00 0\nRss: 64 kB\nSwap: 8 kB\n"
                     "c000000-c010000 rw-p 00000000 00:00 0\nRss: 64 kB\nSwap: 16 kB\n"
                     "d000000-d001000 rw-p 00000000 fe:00 1   /lib/empty.so\nRss: 0 kB\n"
                     "d002000-d003000 rw-p 00000000 00:00 0\nRss: 0 kB\n"
                     "d004000-d006000 rw-p 00000000 00:00 0\nRss: 0 kB\nSwap: 1 kB\n"
                     "e000000-e001000 rw-p 00000000 00:00 0\nRss: 0 kB\n");
    map_range(&f, 0xe000000, 1, WIRE_MAPPING_ANONYMOUS);
    allocate(&f, 0x4000010, 24);
    allocate(&f, 0xc000010, 56);
    split(&f);
    static const struct rec_part wanted[] = {
        {.kind = REC_PART_LIVE, .areas = 3, .virtual_bytes = 80, .rss_bytes = 80},
        {.kind = REC_PART_ROUNDING, .areas = 3, .virtual_bytes = 16, .rss_bytes = 16},
        {.kind = REC_PART_KEPT,
         .areas = 3,
         .virtual_bytes = 48 * 4096 - 96,
         .rss_bytes = 48 * 4096 - 96,
         .swap_bytes = 28 << 10},
        {.kind = REC_PART_FILE, .areas = 1, .virtual_bytes = 4096},
        {.kind = REC_PART_REST, .areas = 1, .virtual_bytes = 8192, .swap_bytes = 1024},
        {.kind = REC_PART_MAPPED, .areas = 1, .virtual_bytes = 4096},
    };
    assert_int_equal(f.tables.parts.len, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        const struct rec_part *part = part_of(&f, wanted[i].kind);
        assert_non_null(part);
        assert_int_equal(part->areas, wanted[i].areas);
        assert_int_equal(part->virtual_bytes, wanted[i].virtual_bytes);
        assert_int_equal(part->rss_bytes, wanted[i].rss_bytes);
        assert_int_equal(part->swap_bytes, wanted[i].swap_bytes);
    }
    close_fixture(&f);
}

// Two owners share an area: by its pages, and without these by their sizes.
static void owners_of_one_area_share_it(void **state)
{
    (void)state;
    for (unsigned has_pages = 0; has_pages < 2; has_pages++) {
        struct fixture f;
        open_fixture(&f, "5000000-5040000 rw-p 00000000 00:00 0\nRss: 64 kB\n"
                         "6000000-6001000 rw-p 00000000 fe:00 1   /lib/x.so\nRss: 4 kB\n");
        const struct address_range own = {.start = 0x5010000, .end = 0x5020000};
        assert_int_equal(address_range_vec_push(&f.own, own), ERR_OK);
        f.has_pages = has_pages != 0;
        f.absent_from = 0x5000000;
        f.absent_to = 0x5030000;
        split(&f);
        assert_int_equal(f.snapshot.own_bytes, has_pages != 0 ? 0 : 16 << 10);
        assert_int_equal(f.snapshot.rest_bytes, has_pages != 0 ? 64 << 10 : 48 << 10);
        assert_int_equal(f.snapshot.file_bytes, 4 << 10);
        assert_int_equal(f.snapshot.flags & REC_SNAPSHOT_ESTIMATED,
                         has_pages != 0 ? 0 : REC_SNAPSHOT_ESTIMATED);
        close_fixture(&f);
    }
    struct fixture f; // the pages of an area with one owner are not read
    open_fixture(&f, "6000000-6001000 rw-p 00000000 fe:00 1   /lib/x.so\nRss: 4 kB\n");
    f.has_pages = false;
    split(&f);
    assert_int_equal(f.snapshot.flags & REC_SNAPSHOT_ESTIMATED, 0);
    close_fixture(&f);
}

// The program went on after its map was read: the pages of a block were not seen.
static void more_than_the_rest_has_room_for_is_of_blocks(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "200000-210000 rw-p 00000000 00:00 0   [heap]\nRss: 64 kB\n");
    f.absent_from = 0x200000;
    f.absent_to = 0x208000;
    allocate(&f, 0x200010, 8 * PAGE - 24);
    split(&f);
    assert_int_equal(f.snapshot.live_bytes, 8 * PAGE - 24);
    assert_int_equal(f.snapshot.rounding_bytes, 8);
    assert_int_equal(f.snapshot.kept_bytes, 8 * PAGE + 16);
    assert_int_equal(part_of(&f, REC_PART_LIVE)->is_estimate, 1);
    close_fixture(&f);
}

// Draw the map of 4 pages of a file whose first page is `head`, and of 12 pages behind them.
static void
open_file_fixture(struct fixture *f, const uint8_t *head, const char *permissions, unsigned major)
{
    CLEANUP(strbuf_release) struct strbuf map = {0};
    const uint64_t start = (uint64_t)head;
    strbuf_printf(&map, "%" PRIx64 "-%" PRIx64 " %s 00000000 %02x:00 1   /lib/x.so\nRss: 16 kB\n",
                  start, start + 4 * PAGE, permissions, major);
    strbuf_printf(&map, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0\nRss: 48 kB\n",
                  start + 4 * PAGE, start + 16 * PAGE);
    open_fixture(f, strbuf_text(&map));
    f->resident = UINT64_MAX;
}

// What the program mapped by a system call of its own behind a file is not the file's, even where
// the kernel makes one area of it and of the file's .bss.
static void memory_behind_a_file_is_its_own_as_far_as_its_headers_say(void **state)
{
    (void)state;
    static _Alignas(4096) uint8_t head[4096];
    const Elf64_Phdr loads[] = {
        {.p_type = PT_LOAD, .p_vaddr = 0x10000, .p_memsz = PAGE},
        {.p_type = PT_LOAD, .p_vaddr = 0x10000 + 2 * PAGE, .p_memsz = 4 * PAGE + 100},
        {.p_type = PT_NOTE, .p_vaddr = 0x90000, .p_memsz = PAGE},
    };
    Elf64_Ehdr file = {.e_ident = ELFMAG, .e_phoff = sizeof(file), .e_phnum = ARRAY_LEN(loads)};
    file.e_ident[EI_CLASS] = ELFCLASS64;
    static const struct {
        const char *permissions;
        bool is_elf;
        bool is_readable;
        Elf64_Half segments;
        uint64_t bss_pages;
        unsigned major; // 0: of a file system that may never answer
        bool is_absent; // the headers are not resident
    } cases[] = {
        {"rw-p", true, true, 3, 3, 0xfe, false}, {"rw-p", false, true, 3, 0, 0xfe, false},
        {"rw-s", true, true, 3, 0, 0xfe, false}, {"rw-p", true, false, 3, 12, 0xfe, false},
        {"rw-p", true, true, 200, 12, 8, false}, {"rw-p", true, true, 0, 12, 0xfe, false},
        {"rw-p", true, true, 3, 3, 0xfe, true},  {"rw-p", true, true, 3, 3, 0, false},
        {"rw-p", true, true, 3, 12, 0, true},
    };
    CLEANUP(fd_closep) int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    CLEANUP(fd_closep) int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    int nothing = -1;
    assert_true(memory >= 0 && pagemap >= 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        memset(head, 'x', sizeof(head));
        file.e_phnum = cases[i].segments;
        if (cases[i].is_elf) {
            memcpy(head, &file, sizeof(file));
            memcpy(head + sizeof(file), loads, sizeof(loads));
        }
        struct fixture f;
        open_file_fixture(&f, head, cases[i].permissions, cases[i].major);
        const struct page_source pages = {.read = pagemap_read,
                                          .context = cases[i].is_absent ? &nothing : &pagemap};
        memory_areas_bound_bss(&f.map, cases[i].is_readable ? memory : -1, &pages);
        split(&f);
        assert_int_equal(f.snapshot.file_bytes, (4 + cases[i].bss_pages) * PAGE);
        assert_int_equal(f.snapshot.rest_bytes, (12 - cases[i].bss_pages) * PAGE);
        close_fixture(&f);
    }
}

static uint64_t count_pause(void *context)
{
    (*(unsigned *)context)++;
    return 0;
}

// Others are not held up by a map of many areas.
static void a_long_map_is_split_with_pauses(void **state)
{
    (void)state;
    enum {
        AREAS = 10000
    };
    struct fixture f;
    unsigned pauses = 0;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    for (unsigned i = 0; i < AREAS; i++) { // neighbours that differ stay apart
        strbuf_printf(&text, "%x-%x r-%cp 0 00:00 0 \nRss: 4 kB\n", 0x10001000 + i * 0x1000,
                      0x10002000 + i * 0x1000, i % 2 != 0 ? 'x' : '-');
    }
    open_fixture(&f, strbuf_text(&text));
    const struct rss_process what = {.aggregator = &f.aggregator,
                                     .process = f.process,
                                     .listed = &f.listed,
                                     .own = &f.own,
                                     .stack_tops = &f.tops,
                                     .stack_pointers = &f.pointers,
                                     .pause = count_pause,
                                     .context = &pauses};
    assert_int_equal(rss_split(&what, &f.map, 0, &f.aggregator.strings, &f.snapshot, &f.tables),
                     ERR_OK);
    assert_int_equal(f.map.areas.len, AREAS);
    assert_int_equal(f.snapshot.rss_bytes, AREAS * PAGE);
    assert_int_equal(f.tables.parts.len, 1);
    assert_int_equal(f.tables.parts.items[0].areas, AREAS);
    assert_in_range(pauses, AREAS / 1024, AREAS / 256);
    close_fixture(&f);
}

enum {
    HEAP_START = 0x20000000,
    HEAP_PAGES = 4096,
    HEAP_BLOCKS = 60000,
};

// A process whose blocks change in the pauses of its split.
struct pausing {
    struct fixture f;
    unsigned random;
    unsigned pauses;
    unsigned last_pause;      // the process goes in this one; 0: it stays
    unsigned changes_a_pause; // so many blocks come, and as many go
    unsigned changes;         // so far
    uint64_t changed_bytes;   // of these blocks
    unsigned next;            // number of the next block
    unsigned first_left;      // that of the oldest one
};

static uint64_t number_address(unsigned number)
{
    return HEAP_START + 16 + (uint64_t)number * 256;
}

static unsigned number_size(unsigned number)
{
    return 1 + number * 2654435761u % 200;
}

// List the blocks that are left.
static void list_blocks(struct pausing *p)
{
    listed_block_vec_clear(&p->f.listed);
    for (unsigned number = p->first_left; number < p->next; number++) {
        allocate(&p->f, number_address(number), number_size(number));
    }
}

static uint64_t change_some(void *context)
{
    struct pausing *p = context;
    assert_true(p->last_pause == 0 || p->pauses < p->last_pause); // it is asked for nothing later
    p->pauses++;
    for (unsigned i = 0; i < p->changes_a_pause; i++) {
        p->changed_bytes += number_size(p->next++) + number_size(p->first_left++);
        p->changes += 2;
    }
    return p->pauses == p->last_pause ? LISTED_WALK_GONE : 2 * (uint64_t)p->changes_a_pause;
}

static void open_pausing(struct pausing *p)
{
    char map[80];
    (void)snprintf(map, sizeof(map), "%x-%x rw-p 0 00:00 0 [heap]\nRss: %d kB\n", HEAP_START,
                   HEAP_START + HEAP_PAGES * 4096, HEAP_PAGES * 4);
    open_fixture(&p->f, map);
    p->f.resident = 0xfedcba9876543210;
    p->next = HEAP_BLOCKS;
}

static void split_pausing(struct pausing *p, uint64_t (*pause)(void *context))
{
    struct fixture *f = &p->f;
    list_blocks(p);
    const struct rss_process what = {.aggregator = &f->aggregator,
                                     .process = f->process,
                                     .listed = &f->listed,
                                     .own = &f->own,
                                     .stack_tops = &f->tops,
                                     .stack_pointers = &f->pointers,
                                     .is_heap_known = true,
                                     .pages = {.read = read_pages, .context = f},
                                     .pause = pause,
                                     .context = p};
    rss_tables_release(&f->tables);
    f->tables = (struct rss_tables){0};
    f->snapshot = (struct rec_memory_snapshot){0};
    assert_int_equal(rss_split(&what, &f->map, 0, &f->aggregator.strings, &f->snapshot, &f->tables),
                     ERR_OK);
}

// Whatever happens in the pauses, the list of blocks stays, and so do the walks and their pauses.
// What is off is in the blocks that came or went, and the snapshot says so; if they are many, pages
// are not judged.
static void many_blocks_are_split_with_pauses(void **state)
{
    (void)state;
    static const unsigned changes[] = {0, 1, 100, 5000};
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        struct pausing p = {.changes_a_pause = changes[i]};
        open_pausing(&p);
        split_pausing(&p, change_some);
        assert_in_range(p.pauses, 2 * (HEAP_BLOCKS / LISTED_WALK_STEP),
                        3 * (HEAP_BLOCKS / LISTED_WALK_STEP + 1));
        const struct rec_memory_snapshot paused = p.f.snapshot;
        split_pausing(&p, NULL);
        const struct rec_memory_snapshot *now = &p.f.snapshot;
        assert_in_range(paused.requested_bytes, excess_u64(now->requested_bytes, p.changed_bytes),
                        now->requested_bytes + p.changed_bytes);
        assert_in_range(paused.live_bytes, excess_u64(now->live_bytes, p.changed_bytes),
                        now->live_bytes + p.changed_bytes);
        assert_int_equal(paused.rss_bytes, now->rss_bytes);
        assert_int_equal(paused.flags & REC_SNAPSHOT_ESTIMATED,
                         changes[i] != 0 ? REC_SNAPSHOT_ESTIMATED : 0);
        assert_int_equal(paused.flags & REC_SNAPSHOT_RELEASED,
                         p.changes < HEAP_BLOCKS / 16 ? REC_SNAPSHOT_RELEASED : 0);
        if (changes[i] == 0) {
            assert_memory_equal(&paused, now, sizeof(paused));
        }
        close_fixture(&p.f);
    }
}

// Nothing of a process is looked at after the pause in which it went.
static void a_process_may_go_while_it_is_split(void **state)
{
    (void)state;
    for (unsigned last = 1; last <= 6; last++) {
        struct pausing p = {.changes_a_pause = 10, .last_pause = last};
        open_pausing(&p);
        split_pausing(&p, change_some);
        assert_int_equal(p.pauses, last);
        assert_int_equal(p.f.tables.survivors.len, 0);
        close_fixture(&p.f);
    }
}

static bool allocate_meanwhile(void *context, struct page_wants *wants)
{
    struct fixture *f = context;
    const struct page_source source = {.read = read_pages, .context = f};
    page_wants_read(wants, &source);
    allocate(f, 0x5002010, 5000);
    return true;
}

// The pages are read aside, and events are counted meanwhile: the blocks are those of the end.
static void blocks_that_come_while_pages_are_read_count(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "5000000-5010000 rw-p 0 00:00 0 [heap]\nRss: 64 kB\n");
    allocate(&f, 0x5000010, 3000);
    const struct rss_process what = {.aggregator = &f.aggregator,
                                     .process = f.process,
                                     .listed = &f.listed,
                                     .own = &f.own,
                                     .stack_tops = &f.tops,
                                     .stack_pointers = &f.pointers,
                                     .is_heap_known = true,
                                     .read_pages = allocate_meanwhile,
                                     .context = &f};
    assert_int_equal(rss_split(&what, &f.map, 0, &f.aggregator.strings, &f.snapshot, &f.tables),
                     ERR_OK);
    assert_int_equal(f.snapshot.requested_bytes, 8000);
    assert_int_equal(f.snapshot.live_bytes, 8000);
    assert_int_equal(f.snapshot.rss_bytes, 64 * 1024);
    assert_int_equal(f.snapshot.flags & REC_SNAPSHOT_ESTIMATED, 0);
    close_fixture(&f);
}

static void appended_tables_are_of_later_snapshots(void **state)
{
    (void)state;
    struct rss_tables tables = {0};
    struct rss_tables more = {0};
    for (uint32_t i = 0; i < 3; i++) {
        const struct rec_part part = {.snapshot = i, .kind = 10 + i};
        const struct rec_survivor survivor = {.snapshot = i, .node = 20 + i};
        assert_int_equal(rec_part_vec_push(&more.parts, part), ERR_OK);
        assert_int_equal(rec_survivor_vec_push(&more.survivors, survivor), ERR_OK);
    }
    assert_int_equal(rss_tables_append(&tables, &more, 0), ERR_OK);
    assert_int_equal(rss_tables_append(&tables, &more, 7), ERR_OK);
    assert_int_equal(tables.parts.len, 6);
    assert_int_equal(tables.survivors.len, 6);
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t snapshot = i < 3 ? i : 7 + i - 3;
        assert_int_equal(tables.parts.items[i].snapshot, snapshot);
        assert_int_equal(tables.parts.items[i].kind, 10 + i % 3);
        assert_int_equal(tables.survivors.items[i].snapshot, snapshot);
        assert_int_equal(tables.survivors.items[i].node, 20 + i % 3);
    }
    rss_tables_release(&tables);
    rss_tables_release(&more);
}

static uint64_t rest_of(const struct fixture *f, const char *name)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < f->tables.parts.len; i++) {
        const struct rec_part *part = &f->tables.parts.items[i];
        const char *path = string_table_get(&f->aggregator.strings, part->path);
        bytes += part->kind == REC_PART_REST && strcmp(path, name) == 0 ? part->rss_bytes : 0;
    }
    return bytes;
}

// What an allocator says of a heap that was recorded in part. 16 pages of chunks, 8 of large
// blocks, and 8 of another owner are one area of the kernel.
static void what_an_allocator_says_divides_its_heap(void **state)
{
    (void)state;
    static const struct heap_claim claims[] = {{{0x5000000, 0x5010000}, HEAP_CLAIM_CHUNKS},
                                               {{0x5010000, 0x5018000}, HEAP_CLAIM_BLOCKS}};
    static const struct address_range free[] = {{0x5000100, 0x5000200},  // in a page
                                                {0x5001f00, 0x5004100},  // two whole pages
                                                {0x5008000, 0x500a000},  // one, after its head
                                                {0x500c000, 0x5010000}}; // not resident
    for (int is_whole = 0; is_whole < 2; is_whole++) {
        struct fixture f;
        open_fixture(&f, "5000000-5020000 rw-p 00000000 00:00 0\nRss: 112 kB\n");
        f.is_partial = true;
        f.absent_from = 0x500c000;
        f.absent_to = 0x5010000;
        f.foreign.is_whole = is_whole != 0;
        f.process->record.flags |= REC_PROCESS_ATTACHED;
        for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
            assert_int_equal(heap_claim_vec_push(&f.foreign.claims, claims[i]), ERR_OK);
        }
        for (size_t i = 0; i < ARRAY_LEN(free); i++) {
            assert_int_equal(address_range_vec_push(&f.foreign.free, free[i]), ERR_OK);
        }
        assert_int_equal(u64_vec_push(&f.foreign.tops, 0x5008000), ERR_OK); // of an arena
        allocate(&f, 0x500b010, 1000);
        split(&f);
        assert_int_equal(f.snapshot.live_bytes, 1000);
        assert_int_equal(f.snapshot.kept_bytes, 0x100 + 0x2200 + 0x2000);
        assert_int_equal(f.snapshot.empty_page_bytes, 3 * PAGE);
        uint64_t released_bytes = 0;
        for (size_t i = 0; i < f.tables.parts.len; i++) {
            released_bytes += f.tables.parts.items[i].released_bytes;
        }
        assert_int_equal(released_bytes, 2 * PAGE);
        const char *chunks = is_whole != 0 ? "[heap of glibc, allocated before recording]"
                                           : "[heap of glibc, allocated before recording, or free]";
        assert_int_equal(rest_of(&f, chunks), 12 * PAGE - f.snapshot.live_bytes -
                                                  f.snapshot.rounding_bytes -
                                                  f.snapshot.kept_bytes);
        assert_int_equal(rest_of(&f, "[large blocks of glibc, allocated before recording]"),
                         8 * PAGE);
        assert_int_equal(rest_of(&f, ""), 8 * PAGE);
        close_fixture(&f);
    }
}

// The kernel has joined later mappings with what an attached process had before.
static void memory_from_before_an_attach_is_named(void **state)
{
    (void)state;
    static const char name[] = "[mapped before recording; x.so contains mimalloc]";
    static const uint64_t bounds[] = {0x5004000, 0x5008000, 0x5008000, 0x5010000};
    struct fixture f;
    open_fixture(&f, "5000000-5020000 rw-p 00000000 00:00 0\nRss: 128 kB\n"
                     "6000000-6001000 rw-p 00000000 00:00 0   [anon:x]\nRss: 4 kB\n");
    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        assert_int_equal(u64_vec_push(&f.process->earlier_ranges, bounds[i]), ERR_OK);
    }
    assert_int_equal(
        string_table_intern_text(&f.aggregator.strings, name, &f.process->earlier_name), ERR_OK);
    map_range(&f, 0x500c000, 4, WIRE_MAPPING_ANONYMOUS); // mapped again since then
    split(&f);
    assert_int_equal(f.snapshot.mapped_bytes, 4 * PAGE);
    assert_int_equal(rest_of(&f, name), 8 * PAGE);
    assert_int_equal(rest_of(&f, ""), 20 * PAGE);
    assert_int_equal(rest_of(&f, "[anon:x]"), PAGE);
    close_fixture(&f);
}

static rec_string text_of(struct fixture *f, const char *text)
{
    rec_string string;
    assert_int_equal(string_table_intern_text(&f->aggregator.strings, text, &string), ERR_OK);
    return string;
}

// The code of a module maps heap.
static void map_by(struct fixture *f, const char *path, uint64_t address, uint64_t pages)
{
    struct stack_table *stacks = &f->aggregator.stacks;
    const struct bytes text = {.data = (const uint8_t *)path, .len = strlen(path)};
    uint32_t module;
    uint32_t frame;
    uint32_t node;
    assert_int_equal(stack_table_module(stacks, text, (struct bytes){0}, &module), ERR_OK);
    assert_int_equal(stack_table_frame(stacks, module, 16, 0, &frame), ERR_OK);
    assert_int_equal(stack_table_node(stacks, 0, frame, &node), ERR_OK);
    const struct wire_mapping change = {
        .address = address, .size_bytes = pages * PAGE, .number = 1, .kind = WIRE_MAPPING_HEAP};
    assert_int_equal(aggregator_mapping(&f->aggregator, f->process, &change, node), ERR_OK);
}

// Return the resident bytes of a kind that are of a module's allocator; "": unknown.
static uint64_t bytes_of(const struct fixture *f, uint32_t kind, const char *module)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < f->tables.parts.len; i++) {
        const struct rec_part *part = &f->tables.parts.items[i];
        const char *path = string_table_get(&f->aggregator.strings, part->allocator);
        bytes += part->kind == kind && strcmp(path, module) == 0 ? part->rss_bytes : 0;
    }
    return bytes;
}

static void open_allocators(struct fixture *f, const char *const *names, size_t count)
{
    open_fixture(f, "100000-110000 rw-p 00000000 00:00 0   [heap]\nRss: 64 kB\n"
                    "5000000-5010000 rw-p 00000000 00:00 0\nRss: 64 kB\n"
                    "6000000-6040000 rw-p 00000000 00:00 0\nRss: 256 kB\n"
                    "7000000-7010000 rw-p 00000000 00:00 0\nRss: 64 kB\n");
    f->libc = text_of(f, "/usr/lib/libc.so.6");
    f->process->has_agent = true;
    for (size_t i = 0; i < count; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/usr/lib/lib%s.so.2.0", names[i]);
        const struct process_allocator allocator = {.module = text_of(f, path),
                                                    .name = text_of(f, names[i])};
        assert_int_equal(process_allocator_vec_push(&f->process->allocators, allocator), ERR_OK);
    }
    allocate(f, 0x100010, 1000);
    allocate(f, 0x6000010, 0x20000); // as glibc's that have a mapping of their own
    allocate(f, 0x7000100, 500);
}

// In a process that is recorded from its start each call of mmap is seen, but libc's own.
static void heap_is_of_the_allocator_that_mapped_it(void **state)
{
    (void)state;
    static const char *const names[] = {"jemalloc"};
    struct fixture f;
    open_allocators(&f, names, 1);
    map_by(&f, "/lib/libjemalloc.so.2", 0x5000000, 16); // by the name of a link
    allocate(&f, 0x5000100, 3000);
    split(&f);
    assert_int_equal(bytes_of(&f, REC_PART_LIVE, "/usr/lib/libjemalloc.so.2.0"), 3000);
    assert_int_equal(bytes_of(&f, REC_PART_LIVE, "/usr/lib/libc.so.6"), 1000 + 0x20000);
    assert_int_equal(bytes_of(&f, REC_PART_LIVE, ""), 500);
    const uint64_t rounding = bytes_of(&f, REC_PART_ROUNDING, "/usr/lib/libjemalloc.so.2.0");
    assert_int_equal(bytes_of(&f, REC_PART_KEPT, "/usr/lib/libjemalloc.so.2.0"),
                     16 * PAGE - 3000 - rounding);
    // Beside a block with a mapping of its own is not glibc's memory.
    assert_int_equal(rest_of(&f, "[beside large blocks of glibc]"), (64 - 33) * PAGE);
    close_fixture(&f);
}

// Of memory from before an attach glibc's headers say what is its own.
static void heap_from_before_an_attach_is_of_the_only_other_allocator(void **state)
{
    (void)state;
    static const struct {
        const char *names[2];
        size_t count;
        bool is_read;
        const char *of_break;
        const char *of_other;
    } cases[] = {
        {{"jemalloc"}, 1, true, "/usr/lib/libc.so.6", "/usr/lib/libjemalloc.so.2.0"},
        {{"jemalloc"}, 1, false, "/usr/lib/libc.so.6", ""},
        {{"tcmalloc"}, 1, true, "", "/usr/lib/libtcmalloc.so.2.0"},
        {{"jemalloc", "mimalloc"}, 2, true, "/usr/lib/libc.so.6", ""},
        {{"jemalloc", ""}, 2, true, "", ""},
        {{NULL}, 0, true, "/usr/lib/libc.so.6", "/usr/lib/libc.so.6"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        open_allocators(&f, cases[i].names, cases[i].count);
        const struct heap_claim claims[] = {{{0x100000, 0x110000}, HEAP_CLAIM_CHUNKS},
                                            {{0x6000000, 0x6040000}, HEAP_CLAIM_BLOCKS}};
        for (size_t k = 0; k < ARRAY_LEN(claims); k++) {
            assert_int_equal(heap_claim_vec_push(&f.foreign.claims, claims[k]), ERR_OK);
        }
        f.foreign.is_read = cases[i].is_read;
        f.process->is_late = true;
        f.is_partial = true;
        split(&f);
        print_message("case %zu\n", i);
        const char *const owners[] = {cases[i].of_break, cases[i].of_other};
        for (size_t k = 0; k < ARRAY_LEN(owners); k++) {
            uint64_t wanted = strcmp(owners[k], "/usr/lib/libc.so.6") == 0 ? 0x20000 : 0;
            wanted += strcmp(owners[k], cases[i].of_break) == 0 ? 1000 : 0;
            wanted += strcmp(owners[k], cases[i].of_other) == 0 ? 500 : 0;
            assert_int_equal(bytes_of(&f, REC_PART_LIVE, owners[k]), wanted);
        }
        close_fixture(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_is_in_the_part_of_its_block),
        cmocka_unit_test(parts_of_one_owner_are_one),
        cmocka_unit_test(owners_of_one_area_share_it),
        cmocka_unit_test(more_than_the_rest_has_room_for_is_of_blocks),
        cmocka_unit_test(memory_behind_a_file_is_its_own_as_far_as_its_headers_say),
        cmocka_unit_test(a_long_map_is_split_with_pauses),
        cmocka_unit_test(many_blocks_are_split_with_pauses),
        cmocka_unit_test(a_process_may_go_while_it_is_split),
        cmocka_unit_test(blocks_that_come_while_pages_are_read_count),
        cmocka_unit_test(appended_tables_are_of_later_snapshots),
        cmocka_unit_test(what_an_allocator_says_divides_its_heap),
        cmocka_unit_test(memory_from_before_an_attach_is_named),
        cmocka_unit_test(heap_is_of_the_allocator_that_mapped_it),
        cmocka_unit_test(heap_from_before_an_attach_is_of_the_only_other_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
