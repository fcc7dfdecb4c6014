// SPDX-License-Identifier: MIT
// A thread that is stopped after each of its instructions: its ring and its nursery must describe
// all its events, once, and the highest live bytes of its heap.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/random_numbers.h"
#include "recorder/ingest/drain.h"
#include "recorder/ingest/test_session.h"
#include "target/producer/nursery/nursery.h"
#include "target/producer/session_join.h"

enum {
    STACKS = 6, // of the lane
};

struct fixture {
    struct test_session on;
    struct lane_producer lane;
};

enum {
#if defined(__SANITIZE_THREAD__)
    SCRIPT_EVENTS = 6, // each takes a hundred times as many instructions
#elif defined(__SANITIZE_ADDRESS__)
    SCRIPT_EVENTS = 40, // and here some times as many
#else
    SCRIPT_EVENTS = 120,
#endif
    CROWDED_COUNTERS = 2,
    SIZES = 3,
    KINDS = 6, // of stack and size
};

// Return the address of the block that event number `i` of the script makes.
#define SCRIPT_STEP   UINT64_C(0x10000000) // does not change a block's place
#define SCRIPT_PLACES 5u

static uint64_t script_address(uint32_t i)
{
    return 0x100000 + (uint64_t)i * SCRIPT_STEP + (uint64_t)(i % SCRIPT_PLACES) * 16;
}

// The contents of the one lane: its ring from the beginning, and its nursery.
struct event_sums {
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees;
    uint64_t live_bytes;
    uint64_t peak_bytes;
    uint64_t sizes_bytes[SCRIPT_EVENTS]; // of live blocks, by the event that made them
};

static uint64_t *size_of_block(struct event_sums *sums, uint64_t address)
{
    const uint64_t i = (address - script_address(0)) / SCRIPT_STEP;
    assert_true(i < SCRIPT_EVENTS);
    return sums->sizes_bytes + i;
}

static void sums_add_freed(struct event_sums *sums, uint64_t address)
{
    uint64_t *size_bytes = size_of_block(sums, address);
    sums->frees++;
    sums->live_bytes -= *size_bytes;
    *size_bytes = 0;
}

static void sums_add_height(struct event_sums *sums, uint64_t bytes)
{
    sums->peak_bytes = sums->peak_bytes > bytes ? sums->peak_bytes : bytes;
}

static void sums_add_allocated(struct event_sums *sums, uint64_t address, uint64_t size_bytes)
{
    *size_of_block(sums, address) = size_bytes;
    sums->allocations++;
    sums->allocated_bytes += size_bytes;
    sums->live_bytes += size_bytes;
    sums_add_height(sums, sums->live_bytes);
}

static uint64_t bytes_of_high_water(const struct wire_record *record)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < record->count; i++) {
        bytes += record->payload[i] & WIRE_SIZE_MAX;
    }
    return bytes;
}

static void sums_add_record(struct event_sums *sums, const struct wire_record *record)
{
    switch (record->tag) {
    case WIRE_ALLOC:
        sums_add_allocated(sums, record->address, record->size_bytes);
        break;
    case WIRE_REALLOC:
    case WIRE_REALLOC_TEMPORARY:
        sums_add_freed(sums, record->old_address);
        sums_add_allocated(sums, record->address, record->size_bytes);
        break;
    case WIRE_FREE:
    case WIRE_FREE_TEMPORARY:
        sums_add_freed(sums, record->address);
        break;
    case WIRE_PAIR:
    case WIRE_PAIR_TEMPORARY:
    case WIRE_PAIRS:
    case WIRE_PAIRS_TEMPORARY:
        sums->allocations += record->count;
        sums->frees += record->count;
        sums->allocated_bytes += record->size_bytes;
        break;
    case WIRE_HIGH_WATER:
        sums_add_height(sums, sums->live_bytes + bytes_of_high_water(record));
        break;
    default:
        break;
    }
}

static void sums_add_words(const uint64_t *words, size_t count, struct event_sums *sums)
{
    struct wire_record record = {0};
    for (size_t at = 0; at < count; at += record.words) {
        assert_int_equal(wire_decode(words + at, count - at, &record), WIRE_DECODED);
        sums_add_record(sums, &record);
    }
}

static struct event_sums listen(struct lane_header *lane, struct nursery_tables *scratch)
{
    struct event_sums sums = {0};
    struct u64_vec late = {0};
    const uint64_t *ring = (const uint64_t *)(const void *)lane_ring(lane);
    sums_add_words(ring, atomic_load(&lane->write_pos) / sizeof(*ring), &sums);
    assert_int_equal(nursery_reader_take(lane, false, scratch, &late), ERR_OK);
    sums_add_words(late.items, late.len, &sums);
    u64_vec_release(&late);
    return sums;
}

// Each begins a bucket of 8 sizes or more.
static const uint32_t sizes_of_kinds[SIZES] = {32, 64, 256};

struct script_event {
    uint64_t freed; // 0: none
    uint64_t made;  // 0: none; both: a realloc
    uint64_t size_bytes;
    uint32_t slot;
    bool is_tick; // before it
};

// The events of the stopped thread, in memory that its tracer sees.
struct script {
    _Atomic uint32_t done;
    struct script_event events[SCRIPT_EVENTS];
    struct event_sums after[SCRIPT_EVENTS + 1]; // after that many events
};

// Return the next slot whose blocks of that size come to one of the first counters, to meet others
// there. (So do temporary ones elsewhere: their keys differ from these by the same bit.)
static uint32_t crowded_slot(struct lane_header *lane, uint32_t slot, uint32_t size)
{
    const struct nursery_counter *end = lane_nursery_tables(lane)->counters + CROWDED_COUNTERS;
    do {
        slot++;
    } while (nursery_counter_at(lane, nursery_counter_key(nursery_kind(slot, size))) >= end);
    return slot;
}

// Many blocks in few places, and many kinds in few counters. With room, a first large block keeps
// the rest below the high-water mark; without, each event sets a new one.
static void write_script(struct lane_header *lane, struct script *script, bool has_room)
{
    uint64_t random = 99;
    uint32_t slots[KINDS] = {0};
    for (uint32_t i = 0; i < KINDS; i++) {
        slots[i] = crowded_slot(lane, i < SIZES ? 0 : slots[i - SIZES], sizes_of_kinds[i % SIZES]);
    }
    uint64_t live[SCRIPT_EVENTS];
    uint32_t live_count = 0;
    for (uint32_t i = 0; i < SCRIPT_EVENTS; i++) {
        struct script_event *e = script->events + i;
        const uint64_t r = next_random(&random) >> 16;
        const bool is_free = (i == 1 && has_room) || (live_count > 0 && r % 5 < 2);
        const bool is_move = !is_free && live_count > 0 && r % 5 == 2;
        e->is_tick = (r >> 8) % 12 == 0;
        e->freed = is_free || is_move ? live[--live_count] : 0;
        if (!is_free) {
            e->made = script_address(i);
            e->size_bytes =
                i == 0 && has_room ? 100000 : sizes_of_kinds[(r >> 20) % SIZES] + (r >> 30) % 8;
            e->slot = slots[(r >> 20) % SIZES + (r >> 40) % (KINDS / SIZES) * SIZES];
            live[live_count++] = e->made;
        }
    }
}

// Compute the counts after each event, before the thread begins.
static void plan(struct script *script)
{
    for (uint32_t i = 0; i < SCRIPT_EVENTS; i++) {
        const struct script_event *e = script->events + i;
        struct event_sums *sums = script->after + i + 1;
        *sums = script->after[i];
        if (e->freed != 0) {
            sums_add_freed(sums, e->freed);
        }
        if (e->made != 0) {
            sums_add_allocated(sums, e->made, e->size_bytes);
        }
    }
}

static bool play_event(struct lane_producer *p, const struct script_event *e)
{
    if (!nursery_begin(p)) {
        return false;
    }
    if (e->freed != 0 && e->made != 0) {
        return nursery_reallocate(p, e->freed, e->made, e->size_bytes, e->slot,
                                  (struct freed_note){0});
    }
    return e->freed != 0 ? nursery_free(p, e->freed)
                         : nursery_allocate(p, e->made, e->size_bytes, e->slot);
}

static void play(struct fixture *f, struct script *script)
{
    for (uint32_t i = 0; i < SCRIPT_EVENTS; i++) {
        atomic_fetch_add(&f->on.session.header->clock_ms, script->events[i].is_tick);
        if (!play_event(&f->lane, script->events + i)) {
            _exit(1);
        }
        atomic_store(&script->done, i + 1);
    }
}

// A realloc is two events to the lane; it may be interrupted between them.
static bool lies_between(const struct event_sums *sums,
                         const struct event_sums *low,
                         const struct event_sums *high)
{
    return sums->allocations >= low->allocations && sums->allocations <= high->allocations &&
           sums->frees >= low->frees && sums->frees <= high->frees &&
           sums->allocated_bytes >= low->allocated_bytes &&
           sums->allocated_bytes <= high->allocated_bytes && sums->peak_bytes >= low->peak_bytes &&
           sums->peak_bytes <= high->peak_bytes;
}

static void open_fixture(struct fixture *f)
{
    *f = (struct fixture){0};
    test_session_open(&f->on, SESSION_FOLLOW_CHILDREN | SESSION_ALWAYS_HOLD);
    test_session_add_lane(&f->on, test_session_add_process(&f->on), &f->lane);
    nursery_init(&f->lane);
    assert_true(nursery_begin(&f->lane));
    test_session_define_stacks(&f->lane, STACKS);
}

static void kill_between_any_two_instructions(bool has_room)
{
    static struct fixture f;
    static struct nursery_tables scratch;
    open_fixture(&f);
    struct script *script =
        mmap(NULL, sizeof(*script), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(script, MAP_FAILED);
    write_script(f.lane.lane, script, has_room);
    plan(script);
    const pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0 || raise(SIGSTOP) != 0) {
            _exit(2);
        }
        play(&f, script);
        _exit(0);
    }
    int status = 0;
    uint64_t steps = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    while (WIFSTOPPED(status)) {
        const uint32_t done = atomic_load(&script->done);
        const struct event_sums sums = listen(f.lane.lane, &scratch);
        const uint32_t next = done < SCRIPT_EVENTS ? done + 1 : done;
        if (!lies_between(&sums, script->after + done, script->after + next)) {
            print_message("step %d, event %d: %d allocations, %d frees, %d bytes, peak %d\n",
                          (int)steps, (int)done, (int)sums.allocations, (int)sums.frees,
                          (int)sums.allocated_bytes, (int)sums.peak_bytes);
            fail();
        }
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        steps++;
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(atomic_load(&script->done), SCRIPT_EVENTS);
    assert_true(steps > (uint64_t)SCRIPT_EVENTS * 20);
    assert_int_equal(munmap(script, sizeof(*script)), 0);
    test_session_close(&f.on);
}

static void a_thread_may_be_killed_between_any_two_instructions(void **state)
{
    (void)state;
    kill_between_any_two_instructions(true);
}

static void or_while_its_heap_grows(void **state)
{
    (void)state;
    kill_between_any_two_instructions(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_may_be_killed_between_any_two_instructions),
        cmocka_unit_test(or_while_its_heap_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
