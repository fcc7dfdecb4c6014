// SPDX-License-Identifier: MIT
// A thread that is stopped after each of its instructions: its ring and its book must say all its
// events, once, but for the one that it is in.
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
#include "target/producer/entry/lane_entry.h"

enum {
#if defined(__SANITIZE_THREAD__)
    SCRIPT_EVENTS = 6, // each takes a hundred times as many instructions
#elif defined(__SANITIZE_ADDRESS__)
    SCRIPT_EVENTS = 40, // and here some times as many
#else
    SCRIPT_EVENTS = 120,
#endif
    ROWS = 12,
    PLACES = 4, // of the counters of all rows, so that they are sent for each other
    ADDRESS_STEP = 1 << 17,
};

static const uint32_t g_sizes[] = {24, 40, 90, 300, 700, 5000, 70000};

struct event_sums {
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
};

struct script_event {
    uint64_t address;
    uint64_t size_bytes;
    uint32_t slot;
    uint32_t ticks; // before it
    bool is_free;
};

// The events of the stopped thread, in memory that its tracer sees.
struct script {
    _Atomic uint32_t done;
    struct script_event events[SCRIPT_EVENTS];
    struct event_sums after[SCRIPT_EVENTS + 1]; // after that many events
};

struct fixture {
    struct test_session on;
    struct lane_producer lane;
    uint32_t rows[1024];
};

static void add_cells(const uint64_t *cells, uint32_t count, uint64_t *blocks, uint64_t *bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        *blocks += book_cell_count(cells[i]);
        *bytes += book_cell_bytes(cells[i]);
    }
}

static void add_words(const uint64_t *words, size_t count, struct event_sums *sums)
{
    struct wire_record record = {0};
    for (size_t at = 0; at < count; at += record.words) {
        assert_int_equal(wire_decode(words + at, count - at, &record), WIRE_DECODED);
        struct book_entry entry;
        if (record.tag == WIRE_BOOK) {
            assert_true(book_record_read(words + at, &entry));
            add_cells(entry.sizes, entry.size_count, &sums->allocations, &sums->allocated_bytes);
            add_cells(entry.lives, entry.life_count, &sums->frees, &sums->freed_bytes);
        }
    }
}

// Return what the lane says: its ring from the beginning, and its book.
static struct event_sums listen(struct lane_header *lane)
{
    struct event_sums sums = {0};
    struct u64_vec taken = {0};
    const uint64_t *ring = (const uint64_t *)(const void *)lane_ring(lane);
    add_words(ring, atomic_load(&lane->write_pos) / sizeof(*ring), &sums);
    assert_int_equal(book_reader_take(lane, false, &taken), ERR_OK);
    add_words(taken.items, taken.len, &sums);
    u64_vec_release(&taken);
    return sums;
}

// Draw the events, and compute the sums after each.
static void write_script(struct script *script)
{
    uint64_t random = 99;
    struct script_event live[SCRIPT_EVENTS];
    uint32_t live_count = 0;
    for (uint32_t i = 0; i < SCRIPT_EVENTS; i++) {
        struct script_event *e = script->events + i;
        struct event_sums *sums = script->after + i + 1;
        const uint64_t r = next_random(&random) >> 16;
        *sums = script->after[i];
        e->is_free = live_count > 0 && r % 5 < 2;
        if (e->is_free) {
            *e = live[--live_count];
            e->is_free = true;
            sums->frees++;
            sums->freed_bytes += e->size_bytes;
        } else {
            e->address = 0x7f0000000010 + (uint64_t)i * ADDRESS_STEP;
            e->size_bytes = g_sizes[(r >> 8) % ARRAY_LEN(g_sizes)];
            e->slot = (uint32_t)(r >> 20) % ROWS;
            live[live_count++] = *e;
            sums->allocations++;
            sums->allocated_bytes += e->size_bytes;
        }
        e->ticks = (r >> 40) % 12 == 0 ? 1 + (uint32_t)(r >> 44) % 9 : 0;
    }
}

// Give each slot a row whose counters have few places.
static void choose_rows(uint32_t *rows)
{
    uint32_t row = 0;
    for (uint32_t slot = 0; slot < ROWS; slot++) {
        do {
            row++;
        } while (book_first_place(row) >= PLACES || book_second_place(row) >= PLACES);
        rows[slot] = row;
    }
}

// A forked child has no words of its parent's, so the thread begins its book here.
static bool open_book(struct fixture *f)
{
    struct process_words *words = test_session_open_words(&f->on);
    if (words == NULL) {
        return false;
    }
    book_begin(&f->lane, words, f->rows);
    choose_rows(f->rows);
    return lane_enter(&f->lane);
}

static void play(struct fixture *f, struct script *script)
{
    for (uint32_t i = 0; i < SCRIPT_EVENTS; i++) {
        const struct script_event *e = script->events + i;
        atomic_fetch_add(&f->on.session.header->clock_ms, e->ticks);
        if (!(e->is_free ? lane_free(&f->lane, e->address)
                         : lane_allocate(&f->lane, e->address, e->size_bytes, e->slot))) {
            _exit(1);
        }
        atomic_store(&script->done, i + 1);
    }
}

static bool lies_between(const struct event_sums *sums,
                         const struct event_sums *low,
                         const struct event_sums *high)
{
    return memcmp(sums, low, sizeof(*sums)) == 0 || memcmp(sums, high, sizeof(*sums)) == 0;
}

static void a_thread_may_be_killed_between_any_two_instructions(void **state)
{
    (void)state;
    static struct fixture f;
    test_session_open(&f.on, SESSION_FOLLOW_CHILDREN);
    test_session_add_lane(&f.on, test_session_add_process(&f.on), &f.lane);
    struct script *script =
        mmap(NULL, sizeof(*script), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(script, MAP_FAILED);
    write_script(script);
    const pid_t child = fork();
    if (child == 0) {
        if (!open_book(&f) || ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0 || raise(SIGSTOP) != 0) {
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
        const struct event_sums sums = listen(f.lane.lane);
        const uint32_t next = done < SCRIPT_EVENTS ? done + 1 : done;
        if (!lies_between(&sums, script->after + done, script->after + next)) {
            print_message("step %d, event %d: %d allocations, %d bytes, %d frees, %d bytes\n",
                          (int)steps, (int)done, (int)sums.allocations, (int)sums.allocated_bytes,
                          (int)sums.frees, (int)sums.freed_bytes);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_may_be_killed_between_any_two_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
