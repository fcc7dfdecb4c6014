// SPDX-License-Identifier: MIT
// Compares the learned bounds with pthread_getattr_np, and tests the checked reader at the edges.
#include "target/unwind/environment/stack_bounds.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/page.h"
#include "target/unwind/environment/self_memory.h"

struct region {
    uint64_t low;
    uint64_t high;
};

static struct region true_region(void)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    assert_int_equal(pthread_getattr_np(pthread_self(), &attributes), 0);
    assert_int_equal(pthread_attr_getstack(&attributes, &low, &size), 0);
    (void)pthread_attr_destroy(&attributes);
    return (struct region){.low = (uint64_t)low, .high = (uint64_t)low + size};
}

static uint64_t here(void)
{
    return (uint64_t)__builtin_frame_address(0);
}

// Learn as the walks do, in the thread whose outermost frame is at `root_sp`.
static NOINLINE bool learn_and_compare(uint64_t root_sp)
{
    struct stack_bounds bounds = {0};
    struct region region = true_region();
    uint64_t sp = here();
    bool good = !stack_bounds_hold(&bounds, sp);
    good = good && stack_bounds_learn(&bounds, sp, root_sp);
    good = good && bounds.low <= sp && sp - bounds.low < 4096;
    good = good && bounds.low >= region.low && bounds.top <= region.high;
    // All memory in between can be read.
    for (uint64_t addr = bounds.low; good && addr + 8 <= bounds.top; addr += 512) {
        (void)*(volatile uint64_t *)addr;
    }
    return good;
}

// Extend from 8 KiB further down for each level of `depth`.
static NOINLINE bool learn_deep(size_t depth, struct stack_bounds *bounds)
{
    char block[8192];
    __asm__ volatile("" : : "r"(block) : "memory"); // keeps both block and recursion
    uint64_t sp = here();
    bool good = depth > 0 ? learn_deep(depth - 1, bounds)
                          : stack_bounds_extend(bounds, sp) && stack_bounds_hold(bounds, sp);
    __asm__ volatile("" : : "r"(block) : "memory");
    return good;
}

static void the_main_thread(void **state)
{
    (void)state;
    assert_true(learn_and_compare(here()));
    struct stack_bounds bounds = {0};
    assert_true(stack_bounds_learn(&bounds, here(), here()));
    uint64_t top = bounds.top;
    assert_true(learn_deep(40, &bounds));
    assert_true(bounds.top == top);
}

static void *run_in_thread(void *result)
{
    struct stack_bounds bounds = {0};
    bool good = learn_and_compare(here()) && stack_bounds_learn(&bounds, here(), here()) &&
                learn_deep(5, &bounds);
    // Another thread's stack, and the guard below the own stack, are not part of it.
    struct region region = true_region();
    good = good && !stack_bounds_extend(&bounds, region.low - 64);
    *(bool *)result = good;
    return NULL;
}

static void threads_of_every_kind_of_stack(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 128 << 10, 1 << 20, 64 << 20};
    for (size_t i = 0; i < ARRAY_LEN(sizes) * 2; i++) {
        bool own = i % 2 == 1;
        size_t size = sizes[i / 2] != 0 ? sizes[i / 2] : 256 << 10;
        pthread_attr_t attributes;
        assert_int_equal(pthread_attr_init(&attributes), 0);
        void *memory = NULL;
        if (own) { // with an unreadable page below, as a guard
            memory = mmap(NULL, size + PAGE_LARGEST, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            assert_true(memory != MAP_FAILED);
            assert_int_equal(mprotect(memory, PAGE_LARGEST, PROT_NONE), 0);
            assert_int_equal(
                pthread_attr_setstack(&attributes, (char *)memory + PAGE_LARGEST, size), 0);
        } else if (sizes[i / 2] != 0) {
            assert_int_equal(pthread_attr_setstacksize(&attributes, size), 0);
        }
        pthread_t thread;
        bool good = false;
        assert_int_equal(pthread_create(&thread, &attributes, run_in_thread, &good), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        (void)pthread_attr_destroy(&attributes);
        if (own) {
            assert_int_equal(munmap(memory, size + PAGE_LARGEST), 0);
        }
        if (!good) {
            fail_msg("stack of %zu bytes, own memory: %d", size, own);
        }
    }
}

static void *fork_here(void *status)
{
    const pid_t child = fork();
    if (child == 0) {
        struct stack_bounds bounds = {0};
        _exit(stack_bounds_learn(&bounds, here(), here()) ? 0 : 1);
    }
    if (child < 0 || waitpid(child, status, 0) != child) {
        *(int *)status = -1;
    }
    return NULL;
}

// It leads its process, but it is not the initial thread, which was noted.
static void a_thread_that_forked_knows_its_stack(void **state)
{
    (void)state;
    pthread_t thread;
    int status = -1;
    assert_int_equal(pthread_create(&thread, NULL, fork_here, &status), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, 0);
}

static void what_is_no_stack_of_ours_is_not_learned(void **state)
{
    (void)state;
    static uint64_t in_data[64];
    void *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(mapped != MAP_FAILED);
    const uint64_t places[] = {(uint64_t)in_data, (uint64_t)mapped + 4096, 8, UINT64_MAX - 4096};
    errno = 4321;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct stack_bounds bounds = {0};
        assert_false(stack_bounds_learn(&bounds, places[i], places[i] + 64));
        assert_false(stack_bounds_extend(&bounds, places[i]));
        assert_true(bounds.low == 0 && bounds.top == 0);
        // The memory from there to here does not belong to one stack.
        assert_false(stack_bounds_learn(&bounds, places[i], here()));
    }
    assert_int_equal(errno, 4321);
    assert_int_equal(munmap(mapped, 1 << 20), 0);
}

static void the_checked_reader_stops_at_every_edge(void **state)
{
    (void)state;
    char *pages =
        mmap(NULL, 3 * PAGE_LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    memset(pages, 7, 3 * PAGE_LARGEST);
    assert_int_equal(mprotect(pages + 2 * PAGE_LARGEST, PAGE_LARGEST, PROT_NONE), 0);
    const struct {
        uint64_t addr;
        bool readable;
    } cases[] = {
        {(uint64_t)pages, true},
        {(uint64_t)pages + PAGE_LARGEST - 4, true},
        {(uint64_t)pages + 2 * PAGE_LARGEST - 8, true},
        {(uint64_t)pages + 2 * PAGE_LARGEST - 7, false},
        {(uint64_t)pages + 2 * PAGE_LARGEST, false},
        {(uint64_t)pages + 3, true},
        {0, false},
        {UINT64_MAX - 3, false},
        {UINT64_MAX - 7, false},
        {(uint64_t)1 << 47, false},
    };
    const struct stack_bounds unknown = {0};
    const struct stack_bounds first_part = {.low = (uint64_t)pages,
                                            .top = (uint64_t)pages + PAGE_LARGEST};
    for (size_t i = 0; i < ARRAY_LEN(cases) * 4; i++) {
        struct self_memory memory = self_memory_over(i % 2 == 0 ? &unknown : &first_part);
        memory.reader.is_guess = i >= ARRAY_LEN(cases) * 2;
        uint64_t word = 0;
        bool got = memory.reader.read(&memory.reader, cases[i / 2 % ARRAY_LEN(cases)].addr, &word);
        if (got != cases[i / 2 % ARRAY_LEN(cases)].readable ||
            (got && word != 0x0707070707070707ULL)) {
            fail_msg("case %zu: %d, %#llx", i / 2, got, (unsigned long long)word);
        }
    }
    assert_int_equal(munmap(pages, 3 * PAGE_LARGEST), 0);
}

// Readable memory far below a stack is another mapping, however near it is: a stack grows by
// frames.
static void a_stack_is_not_extended_by_a_mapping_far_below(void **state)
{
    (void)state;
    const uint64_t mib = 1 << 20;
    char *memory = mmap(NULL, 4 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    const uint64_t top = (uint64_t)memory + 4 * mib;
    static const struct {
        uint64_t below;
        bool is_extended;
    } cases[] = {{4096, true},
                 {UINT64_C(1) << 20, true},
                 {(UINT64_C(1) << 20) + 8, false},
                 {UINT64_C(2) << 20, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stack_bounds bounds = {.low = top - 8192, .top = top};
        const uint64_t sp = bounds.low - cases[i].below;
        assert_int_equal(stack_bounds_extend(&bounds, sp), cases[i].is_extended);
        assert_int_equal(stack_bounds_hold(&bounds, sp), cases[i].is_extended);
    }
    assert_int_equal(munmap(memory, 4 * mib), 0);
}

int main(void)
{
    stack_bounds_note_main_thread();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_main_thread),
        cmocka_unit_test(a_stack_is_not_extended_by_a_mapping_far_below),
        cmocka_unit_test(threads_of_every_kind_of_stack),
        cmocka_unit_test(a_thread_that_forked_knows_its_stack),
        cmocka_unit_test(what_is_no_stack_of_ours_is_not_learned),
        cmocka_unit_test(the_checked_reader_stops_at_every_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
