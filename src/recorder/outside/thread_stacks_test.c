// SPDX-License-Identifier: MIT
// thread_stacks: stacks of threads of this process, and memory that looks like some.
#include "recorder/outside/thread_stacks.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/memory/page_size.h"

#define PAGE       UINT64_C(4096)
#define AREA_START UINT64_C(0x5001000)
#define AREA_END   UINT64_C(0x5c00000)
#define USUAL_END  UINT64_C(0x5800000) // of a stack and its guard of 8 MiB

// The pages of the drawn area, whose guard begins a page before it. The descriptor may be in the
// last one, or in that where a stack of 8 MiB ends.
struct drawn {
    uint64_t page;
    uint64_t words[PAGE / sizeof(uint64_t)];
    bool is_resident;
    bool is_readable;
    size_t looks; // at pages
};

static bool read_drawn(void *context, uint64_t address, void *out, size_t size_bytes)
{
    const struct drawn *drawn = context;
    assert_true(drawn->is_resident); // another page would be brought back
    assert_int_equal(size_bytes, PAGE);
    memset(out, 0, size_bytes);
    if (address == drawn->page) {
        memcpy(out, drawn->words, PAGE);
    }
    return drawn->is_readable;
}

static bool page_of_drawn(void *context, uint64_t first_page, size_t count, uint64_t *bits)
{
    struct drawn *drawn = context;
    drawn->looks++;
    assert_true(first_page >= AREA_START / PAGE && first_page < AREA_END / PAGE);
    assert_int_equal(count, 1);
    *bits |= drawn->is_resident;
    return true;
}

static void only_a_descriptor_ends_a_stack(void **state)
{
    (void)state;
    static const struct {
        uint64_t page;
        size_t at; // word
        uint64_t start;
        uint64_t end;
        bool is_away;
        bool is_unreadable;
        bool is_stack;
    } cases[] = {
        {AREA_END - PAGE, 224, AREA_START - PAGE, AREA_END, .is_stack = true},
        {AREA_END - PAGE, 510, AREA_START - 16 * PAGE, AREA_END, .is_stack = true},
        {USUAL_END - PAGE, 0, AREA_START - PAGE, USUAL_END, .is_stack = true}, // a block behind it
        {AREA_END - PAGE, 0, AREA_START, AREA_END, .is_stack = false},         // without its guard
        {AREA_END - PAGE, 0, AREA_START - 17 * PAGE, AREA_END, .is_stack = false}, // far from it
        {AREA_END - PAGE, 0, AREA_START - PAGE + 8, AREA_END, .is_stack = false},  // no page
        {AREA_END - PAGE, 0, AREA_START - PAGE, AREA_END - 8, .is_stack = false},  // likewise
        {AREA_END - PAGE, 0, AREA_START - PAGE, AREA_END + PAGE,
         .is_stack = false}, // beyond the area
        {AREA_END - PAGE, 0, AREA_START - PAGE, AREA_START + PAGE,
         .is_stack = false},                                                   // before itself
        {USUAL_END - PAGE, 0, AREA_START - PAGE, AREA_END, .is_stack = false}, // far behind itself
        {AREA_END - PAGE, 224, AREA_START - PAGE, AREA_END, .is_away = true},
        {AREA_END - PAGE, 224, AREA_START - PAGE, AREA_END, .is_unreadable = true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct drawn drawn = {.page = cases[i].page,
                              .is_resident = !cases[i].is_away,
                              .is_readable = !cases[i].is_unreadable};
        drawn.words[cases[i].at] = cases[i].start;
        drawn.words[cases[i].at + 1] = cases[i].end - cases[i].start;
        CLEANUP(strbuf_release) struct strbuf text = {0};
        CLEANUP(memory_areas_release) struct memory_areas map = {0};
        CLEANUP(u64_vec_release) struct u64_vec tops = {0};
        CLEANUP(u64_vec_release) struct u64_vec pointers = {0};
        strbuf_append_text(&text, "5000000-5001000 ---p 00000000 00:00 0\nRss: 0 kB\n"
                                  "5001000-5c00000 rw-p 00000000 00:00 0\nRss: 16 kB\n"
                                  "6000000-6001000 ---p 00000000 00:00 0\nRss: 0 kB\n"
                                  "6001000-6005000 rw-p 00000000 00:00 0\nRss: 0 kB\n"
                                  "7001000-7005000 rw-p 00000000 00:00 0\nRss: 16 kB\n");
        assert_int_equal(memory_areas_parse(&text, &map), ERR_OK);
        const struct memory_source memory = {.read = read_drawn, .context = &drawn};
        const struct page_source pages = {.read = page_of_drawn, .context = &drawn};
        assert_int_equal(thread_stacks_find(getpid(), &map, &memory, &pages, &tops, &pointers),
                         ERR_OK);
        assert_int_equal(tops.len, cases[i].is_stack);
        assert_true(tops.len == 0 || tops.items[0] == cases[i].end);
    }
}

// Stacks that the kernel has joined are one area, and the first one's descriptor is above its own
// stack pointer: in the middle of those of the others.
static void each_page_is_looked_at_once(void **state)
{
    (void)state;
    enum {
        POINTERS = 2000
    };
    struct drawn drawn = {
        .page = AREA_START + UINT64_C(1009) * PAGE, .is_resident = true, .is_readable = true};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(memory_areas_release) struct memory_areas map = {0};
    CLEANUP(u64_vec_release) struct u64_vec tops = {0};
    CLEANUP(u64_vec_release) struct u64_vec pointers = {0};
    for (uint64_t i = 0; i < POINTERS; i++) { // the first ones are before the area
        assert_int_equal(
            u64_vec_push(&pointers, AREA_START - 1000 * PAGE + (i * 7 % POINTERS) * PAGE + 8),
            ERR_OK);
    }
    strbuf_append_text(&text, "5000000-5001000 ---p 00000000 00:00 0\nRss: 0 kB\n"
                              "5001000-5c00000 rw-p 00000000 00:00 0\nRss: 16 kB\n");
    assert_int_equal(memory_areas_parse(&text, &map), ERR_OK);
    const struct memory_source memory = {.read = read_drawn, .context = &drawn};
    const struct page_source pages = {.read = page_of_drawn, .context = &drawn};
    drawn.words[7] = AREA_START - PAGE;
    drawn.words[8] = UINT64_C(1012) * PAGE;
    assert_int_equal(thread_stacks_find(getpid(), &map, &memory, &pages, &tops, &pointers), ERR_OK);
    assert_int_equal(tops.len, 1);
    assert_int_equal(tops.items[0], AREA_START + UINT64_C(1011) * PAGE);
    assert_true(pointers.len > POINTERS); // and those of this process
    for (size_t i = 1; i < pointers.len; i++) {
        assert_true(pointers.items[i - 1] <= pointers.items[i]);
    }
    assert_int_equal(drawn.looks, 2 + 1010);
}

struct sleeper {
    pthread_barrier_t *barrier;
    uint64_t address; // on its stack
};

static void *sleep_there(void *context)
{
    struct sleeper *sleeper = context;
    sleeper->address = (uint64_t)__builtin_frame_address(0);
    (void)pthread_barrier_wait(sleeper->barrier);
    (void)pthread_barrier_wait(sleeper->barrier);
    return NULL;
}

static bool has_between(const struct u64_vec *found, uint64_t from, uint64_t to)
{
    bool has = false;
    for (size_t i = 0; i < found->len; i++) {
        has = has || (from < found->items[i] && found->items[i] <= to);
    }
    return has;
}

static void stacks_of_running_threads_are_found(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_barrier_t barrier;
    struct sleeper sleeper = {.barrier = &barrier};
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, sleep_there, &sleeper), 0);
    (void)pthread_barrier_wait(&barrier);
    CLEANUP(memory_areas_release) struct memory_areas map = {0};
    CLEANUP(u64_vec_release) struct u64_vec tops = {0};
    CLEANUP(u64_vec_release) struct u64_vec pointers = {0};
    int memory_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    int pages_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    assert_true(memory_fd >= 0 && pages_fd >= 0);
    const struct memory_source memory = {.read = memory_read, .context = &memory_fd};
    const struct page_source pages = {.read = pagemap_read, .context = &pages_fd};
    assert_int_equal(memory_areas_read(getpid(), &map), ERR_OK);
    assert_int_equal(thread_stacks_find(getpid(), &map, &memory, &pages, &tops, &pointers), ERR_OK);
    const uint64_t stack_bytes = UINT64_C(64) << 20;
    assert_true(has_between(&tops, sleeper.address, sleeper.address + stack_bytes) ||
                has_between(&pointers, sleeper.address - PAGE, sleeper.address));
    (void)pthread_barrier_wait(&barrier);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&barrier), 0);
    assert_int_equal(close(memory_fd), 0);
    assert_int_equal(close(pages_fd), 0);
}

int main(void)
{
    g_page_bits = 12; // addresses here are drawn so, whatever this kernel has
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_descriptor_ends_a_stack),
        cmocka_unit_test(each_page_is_looked_at_once),
        cmocka_unit_test(stacks_of_running_threads_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
