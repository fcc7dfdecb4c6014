// SPDX-License-Identifier: MIT
// words_memory: pages of words count, those of lanes do not, and a reading holds for some time.
#include "recorder/session/words_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/test_support/open_files.h"

enum {
    TOUCHED = 512u << 10,
    LANE = 70,
    LATER_NS = 1000000000,
};

struct fixture {
    struct session session;
    struct words_memory memory;
    uint64_t now_ns;
};

static void open_fixture(struct fixture *f)
{
    const struct session_options options = {.max_frames = 64};
    *f = (struct fixture){.now_ns = clock_monotonic_ns() + LATER_NS}; // so that it takes no time
    assert_int_equal(session_create(&options, &f->session, NULL), ERR_OK);
}

static uint64_t read_later(struct fixture *f, uint64_t from_bytes)
{
    f->now_ns += LATER_NS;
    return words_memory_bytes(&f->memory, &f->session, from_bytes, f->now_ns);
}

static void touch_lane(struct fixture *f)
{
    struct lane_header *lane = session_lane(f->session.memory, LANE);
    memset(lane, 1, TOUCHED);
    atomic_store(&f->session.header->lane_bitmap[LANE / 64], (uint64_t)1 << LANE % 64);
}

static void touch_words(struct fixture *f)
{
    void *words = mmap(NULL, TOUCHED, PROT_READ | PROT_WRITE, MAP_SHARED, f->session.memfd,
                       (off_t)(SESSION_WORDS_OFFSET + WORDS_HEADER_BYTES));
    assert_ptr_not_equal(words, MAP_FAILED);
    memset(words, 1, TOUCHED);
    assert_int_equal(munmap(words, TOUCHED), 0);
}

static void words_count_and_lanes_do_not(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    const uint64_t empty = read_later(&f, 0);
    assert_in_range(empty, 1, TOUCHED / 2); // the header, and that of the words
    touch_lane(&f);
    assert_int_equal(read_later(&f, 0), empty);
    touch_words(&f);
    assert_int_equal(read_later(&f, 0), empty + TOUCHED);
    session_wipe_words(&f.session, 1); // of no process
    session_recycle_lane(&f.session, LANE);
    assert_int_equal(read_later(&f, 0), empty + TOUCHED);
    session_give_words_back(&f.session);
    assert_in_range(read_later(&f, 0), 1, empty);
    session_release(&f.session);
}

// Where there are too few to matter, no lane is looked up.
static void few_words_may_include_lanes(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    const uint64_t empty = read_later(&f, UINT64_MAX);
    touch_lane(&f);
    assert_int_equal(read_later(&f, UINT64_MAX), empty + TOUCHED);
    assert_int_equal(read_later(&f, empty + TOUCHED + 1), empty + TOUCHED);
    assert_int_equal(read_later(&f, empty + TOUCHED), empty);
    session_release(&f.session);
}

static void a_reading_holds_for_some_time(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    const uint64_t empty = read_later(&f, 0);
    touch_words(&f);
    assert_true(f.memory.next_ns > f.now_ns);
    assert_int_equal(words_memory_bytes(&f.memory, &f.session, 0, f.memory.next_ns - 1), empty);
    assert_int_equal(words_memory_bytes(&f.memory, &f.session, 0, f.memory.next_ns),
                     empty + TOUCHED);
    session_release(&f.session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_count_and_lanes_do_not),
        cmocka_unit_test(few_words_may_include_lanes),
        cmocka_unit_test(a_reading_holds_for_some_time),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
