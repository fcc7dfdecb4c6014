// SPDX-License-Identifier: MIT
// Whatever a hook writes to its lane, it begins its tick first (lane_entry.h): a thread that has
// been idle writes, and allocates a block while the recorder empties what it believes to be the
// book of a thread that sleeps.
//
// The recorder's page of a counter is read-only, so that the recorder's first store into the book
// faults. That is after it has copied it. The handler lets the thread go on there.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "recorder/session/test_lanes.h"
#include "target/preload/process/stats_query.h"
#include "target/preload/stacks/stack_dictionary.h"
#include "target/producer/entry/lane_try.h"
#include "target/unwind/unwind.h"

enum {
    SLOT = 1,
    NAMES_MAX = 256,
    BLOCK_BYTES = 40,
};

// Blocks by their addresses' indices.
enum {
    COUNTED_BLOCK,
    LATE_BLOCK,
    WRITTEN_BLOCK,
};

static struct world {
    struct test_lanes f;
    struct stack_dictionary dictionary;
    uint64_t first_names[2 * STACK_DICTIONARY_MIN];
    uint64_t grown_names[2 * NAMES_MAX];
    struct module_entry modules[MODULE_DICTIONARY_MIN + MODULE_DICTIONARY_MAX];
    bool has_late_block;
    unsigned faults;
} world;

static bool write_block(struct lane_producer *p)
{
    return lane_allocate(p, test_address(WRITTEN_BLOCK), BLOCK_BYTES, SLOT);
}

static bool write_free(struct lane_producer *p)
{
    return lane_free(p, test_address(COUNTED_BLOCK));
}

static bool write_reallocation(struct lane_producer *p)
{
    return lane_reallocate(p, test_address(COUNTED_BLOCK), test_address(WRITTEN_BLOCK), BLOCK_BYTES,
                           SLOT, &(struct freed_note){0});
}

static bool write_words(struct lane_producer *p)
{
    const uint64_t words[] = {wire_word(WIRE_EVENT, SLOT), 3};
    return lane_send(p, words, ARRAY_LEN(words));
}

static bool write_mark(struct lane_producer *p)
{
    lane_send_mark(p, WIRE_TEXT_MARK, (struct bytes){(const uint8_t *)"here", 4});
    return true;
}

static bool write_name(struct lane_producer *p)
{
    lane_describe(p, WIRE_TEXT_THREAD_NAME, (struct bytes){(const uint8_t *)"worker", 6}, false);
    return true;
}

static bool write_stack(struct lane_producer *p)
{
    const struct unwind_frame frame = {.pc = 0x5000, .name = stack_name(0, 0x5000)};
    const struct stack_view stack = {.frames = &frame, .count = 1, .name = frame.name};
    uint32_t slot;
    return stack_dictionary_define(&world.dictionary, p, &stack, &slot) == ERR_OK;
}

static bool write_leaf(struct lane_producer *p)
{
    uint32_t slot;
    return stack_dictionary_define_leaf(&world.dictionary, p, stack_name(0, 0x1000 + SLOT), 0x5000,
                                        &slot) == ERR_OK;
}

static bool write_query(struct lane_producer *p)
{
    uint32_t number;
    return stats_query_ask(p, STATS_QUERY_THREAD, 0, &number);
}

static bool write_scope(struct lane_producer *p)
{
    uint32_t scope;
    return stats_query_open_scope(p, &scope);
}

static const struct way {
    const char *name;
    bool (*write)(struct lane_producer *p);
    uint32_t allocations;
    uint32_t frees;
    bool enters_nothing; // so the recorder does not keep away, and the thread waits for it
} ways[] = {
    {"a block", write_block, 1, 0, false},
    {"a free", write_free, 0, 1, false},
    {"a reallocation", write_reallocation, 1, 1, false},
    {"other words", write_words, 0, 0, false},
    {"a mark", write_mark, 0, 0, false},
    {"a name", write_name, 0, 0, true},
    {"a stack", write_stack, 0, 0, false},
    {"a leaf", write_leaf, 0, 0, false},
    {"a query", write_query, 0, 0, false},
    {"a scope", write_scope, 0, 0, false},
};

// Make the page of the row's counter, in the recorder's mapping, writable or not.
static void protect_counter(int protection)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct lane_header *lane = session_lane(world.f.on.session.header, 0);
    const uint32_t row = world.f.lanes->rows[SLOT];
    char *place = (char *)(lane_book_tables(lane)->counters + book_first_place(row));
    assert_int_equal(mprotect(place - (uintptr_t)place % page_bytes, page_bytes, protection), 0);
}

static void on_fault(int signal)
{
    (void)signal;
    world.faults++;
    protect_counter(PROT_READ | PROT_WRITE);
    // The thread goes on without a lock, if it believes that it is inside a tick.
    world.has_late_block =
        lane_try_allocate(world.f.lanes, test_address(LATE_BLOCK), BLOCK_BYTES, SLOT);
}

// A thread that has counted a block, and has been idle for a tick.
static struct lane_producer *open_idle(void)
{
    world = (struct world){0};
    struct lane_producer *p = world.f.lanes;
    test_lanes_open(&world.f, 1);
    assert_true(lane_allocate(p, test_address(COUNTED_BLOCK), BLOCK_BYTES, SLOT));
    stack_dictionary_init(&world.dictionary,
                          &(struct stack_dictionary_memory){
                              .first_names = world.first_names,
                              .grown_names = world.grown_names,
                              .names_max = NAMES_MAX,
                              .first_modules = world.modules,
                              .grown_modules = world.modules + MODULE_DICTIONARY_MIN,
                          });
    test_lanes_advance(&world.f, 2);
    for (int i = 0; i < 2; i++) { // the recorder has waited for events of the tick before
        world.f.monotonic_ns += 1000000;
        drain_note_time(&world.f.on.drain, world.f.clock_ms, world.f.monotonic_ns);
    }
    return p;
}

static void no_block_is_lost_to_the_recorder(void **state)
{
    (void)state;
    const struct sigaction action = {.sa_handler = on_fault};
    struct sigaction before;
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        print_message("%s\n", ways[i].name);
        struct lane_producer *p = open_idle();
        assert_true(ways[i].write(p));
        protect_counter(PROT_READ);
        test_lanes_read(&world.f, false);
        protect_counter(PROT_READ | PROT_WRITE);
        assert_int_equal(world.faults, ways[i].enters_nothing);
        assert_false(world.has_late_block); // it would have been lost
        assert_true(lane_allocate(p, test_address(LATE_BLOCK), BLOCK_BYTES, SLOT));
        test_lanes_advance(&world.f, 2);
        test_lanes_pass(&world.f, true);
        const struct running_sums *sums = &world.f.on.aggregator.totals.sums;
        assert_int_equal(sums->allocations, 2 + ways[i].allocations);
        assert_int_equal(sums->frees, ways[i].frees);
        test_lanes_close(&world.f);
    }
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

enum {
    TINY_BLOCKS = 64,
    TINY_EVENTS = 20000,
};

static const _Atomic uint32_t tiny_below = WORDS_TINY_USUAL;

// Let a thread record as with jemalloc, whose small blocks are 8 bytes apart.
static struct lane_producer *open_tiny(void)
{
    struct lane_producer *p = world.f.lanes;
    test_lanes_open(&world.f, 1);
    world.f.words->tiny_below = &tiny_below;
    p->tiny_below = &tiny_below;
    return p;
}

// Hooks count tiny blocks without a call where their grain has the marker, with one elsewhere. Both
// ways take turns here; some blocks are freed past the hooks, and end with the next one there.
static void tiny_blocks_count_once_in_both_ways(void **state)
{
    (void)state;
    world = (struct world){0};
    struct lane_producer *p = open_tiny();
    uint64_t random = 1;
    uint64_t sizes[TINY_BLOCKS] = {0}; // of words; 0: none
    bool is_past[TINY_BLOCKS] = {false};
    uint64_t allocations = 0;
    uint64_t frees = 0;
    uint64_t live_bytes = 0;
    unsigned without_call = 0;
    for (int i = 0; i < TINY_EVENTS; i++) {
        random = hash_mix(random + 1);
        const uint32_t at = (uint32_t)(random % TINY_BLOCKS);
        const uint64_t address = test_address(0) + (uint64_t)at * 8;
        const uint64_t size = 1 + random / 64 % 8;
        const bool may_try = random / 512 % 4 != 0;
        const bool is_live = sizes[at] != 0 && !is_past[at];
        if (is_live && random / 2048 % 8 == 0) {
            is_past[at] = true;
            continue;
        }
        assert_true(sizes[at] != 0 || !lane_try_free(p, address)); // it has no word
        const bool is_tried = may_try && (is_live ? lane_try_free(p, address)
                                                  : lane_try_allocate(p, address, size, SLOT));
        assert_true(is_tried ||
                    (is_live ? lane_free(p, address) : lane_allocate(p, address, size, SLOT)));
        without_call += is_tried;
        frees += sizes[at] != 0;
        live_bytes -= sizes[at];
        sizes[at] = is_live ? 0 : size;
        live_bytes += sizes[at];
        allocations += !is_live;
        is_past[at] = false;
    }
    test_lanes_advance(&world.f, 2);
    test_lanes_pass(&world.f, true);
    const struct running_sums *sums = &world.f.on.aggregator.totals.sums;
    assert_int_equal(sums->allocations, allocations);
    assert_int_equal(sums->frees, frees);
    assert_int_equal(sums->allocated_bytes - sums->freed_bytes, live_bytes);
    assert_true(without_call > TINY_EVENTS / 2);
    test_lanes_close(&world.f);
}

// A handler left a counter's first event by longjmp, before a block was in its cell. The thread's
// next events there are noted as those of an empty counter.
static void a_marked_cell_without_a_block_is_cleared(void **state)
{
    (void)state;
    world = (struct world){0};
    struct lane_producer *p = open_tiny();
    assert_true(lane_allocate(p, test_address(0), 1, SLOT));
    struct book_counter *counter = book_find_counter(p, p->rows[SLOT] & WORD_ROW_MAX);
    assert_non_null(counter);
    assert_true(lane_flush(p));
    book_use(p, counter);
    counter->sizes_used = 1;
    assert_true(lane_flush(p));
    assert_true(book_is_empty(counter));
    assert_true(lane_free(p, test_address(0)));
    assert_true(book_reader_has_counted(p->lane));
    test_lanes_close(&world.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_marked_cell_without_a_block_is_cleared),
        cmocka_unit_test(tiny_blocks_count_once_in_both_ways),
        cmocka_unit_test(no_block_is_lost_to_the_recorder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
