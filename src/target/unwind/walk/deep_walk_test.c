// SPDX-License-Identifier: MIT
// Walks stacks thousands of frames deep; only a part is read back. Each frame must equal
// the one that the functions themselves noted, and the one of a full walk.
#include "target/unwind/unwind.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

#define DEPTH_MAX   120000u
#define STACK_BYTES ((size_t)128 << 20)
#define MAX_FRAMES  1024u

struct descent {
    struct unwind_thread *thread;
    uint64_t seed;
    uint32_t depth;  // current depth
    uint32_t odd;    // the level that makes the other call; UINT32_MAX: none
    uint32_t target; // depth of the bottom
    uint32_t walks;
    uint32_t in_full;  // full walks, which were not remembered
    uint64_t name;     // of the last walk
    uint64_t names;    // of all walks, mixed
    bool is_quick;     // let no time pass between walks: compare nothing at once
    uint64_t *returns; // DEPTH_MAX: the return address of each level
    int failed_line;   // of the first failed expectation, which another thread may not assert
};

#define EXPECT(d, holds) \
    ((d)->failed_line = (d)->failed_line == 0 && !(holds) ? __LINE__ : (d)->failed_line)

static uint32_t draw(struct descent *d, uint32_t below)
{
    d->seed = d->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)((d->seed >> 33) % below);
}

// Check that the levels' frames equal the notes. Frames that were cut out are missing.
static void same_as_noted(struct descent *d, const struct unwind_walk *walk, uint32_t first)
{
    const bool is_cut = (walk->flags & UNWIND_CUT) != 0;
    const uint32_t inner = is_cut ? MAX_FRAMES / 4 : d->depth;
    for (uint32_t i = 0; i < inner; i++) {
        EXPECT(d, walk->frames[walk->count - 1 - first - i].pc == d->returns[d->depth - 1 - i]);
    }
}

static NOINLINE void regs_of_caller(struct unwind_regs *out)
{
    *out = unwind_caller_regs();
}

static NOINLINE void walk_here(struct descent *d)
{
    struct unwind_regs regs;
    regs_of_caller(&regs);
    struct unwind_walk walk;
    unwind_thread_walk(d->thread, &regs, &walk);
    d->in_full += (walk.flags & UNWIND_NOT_REMEMBERED) != 0;
    d->name = walk.name;
    d->names = d->names * 31 + walk.name;
    d->walks++;
    if (d->is_quick) {
        return;
    }
    EXPECT(d, (walk.flags & (UNWIND_UNFINISHED | UNWIND_USED_FRAME_POINTER)) == 0);
    // Further in than the innermost level's note: that level, bottom() and this function.
    same_as_noted(d, &walk, 3);
    EXPECT(d, unwind_thread_check(d->thread, &regs, &walk) == UNWIND_SAME);
}

static NOINLINE void bottom(struct descent *d)
{
    walk_here(d);
    __asm__ volatile("" : : "r"(d) : "memory"); // prevents a tail call
}

// One level: two calls that differ only in their return addresses.
static NOINLINE void level(struct descent *d)
{
    d->returns[d->depth++] = (uint64_t)__builtin_return_address(0);
    if (d->depth >= d->target) {
        bottom(d);
    } else if (d->depth == d->odd) {
        level(d);
        __asm__ volatile("nop" : : "r"(d) : "memory");
    } else {
        level(d);
        __asm__ volatile("" : : "r"(d) : "memory");
    }
    d->depth--;
}

// Descend to the bottom and return, again and again. One return address differs each time; all
// frames have the same addresses.
static void one_frame_differs(struct descent *d)
{
    uint64_t names[8];
    const uint32_t odd[8] = {UINT32_MAX, 1, 2, 7, 100, 300, UINT32_MAX, 1};
    for (uint32_t i = 0; i < 8; i++) {
        d->odd = odd[i];
        level(d);
        names[i] = d->name;
    }
    for (uint32_t i = 0; i < 8; i++) {
        for (uint32_t k = 0; k < i; k++) {
            EXPECT(d, (names[i] == names[k]) == (odd[i] == odd[k]));
        }
    }
}

// Make a random tree of calls: each level makes some calls, and walks now and then.
static NOINLINE void wander(struct descent *d, uint32_t deepest, uint32_t *left)
{
    d->returns[d->depth++] = (uint64_t)__builtin_return_address(0);
    if (d->depth % 1024 == 0 || draw(d, 64) == 0) {
        bottom(d);
        *left -= *left > 0;
    }
    if (d->depth<deepest && * left> 0) {
        if (draw(d, 2) != 0) {
            wander(d, deepest, left);
            __asm__ volatile("nop" : : "r"(d) : "memory");
        } else {
            wander(d, deepest, left);
            __asm__ volatile("" : : "r"(d) : "memory");
        }
        // Most return; some continue from here, so that the depth swings.
        if (draw(d, 40) == 0 && *left > 0) {
            wander(d, deepest, left);
            __asm__ volatile("nop;nop" : : "r"(d) : "memory");
        }
    }
    d->depth--;
}

static struct unwind_thread *new_thread(uint32_t capacity)
{
    struct unwind_thread *thread =
        unwind_thread_init(malloc(unwind_thread_bytes(capacity, MAX_FRAMES)), capacity, MAX_FRAMES);
    unwind_thread_grow_to(thread, UNWIND_FRAMES_MAX);
    return thread;
}

static void wander_far(struct descent *d)
{
    uint32_t left = 150;
    wander(d, d->target, &left);
}

// Run with each walk compared on the way, then as quickly as possible, when less is read back: the
// names must be equal.
static void twice(struct descent *d, void (*run)(struct descent *))
{
    const uint64_t seed = d->seed;
    uint64_t names[2] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        d->is_quick = i > 0;
        d->seed = seed;
        d->names = 0;
        run(d);
        names[i] = d->names;
        __asm__ volatile("" : "+r"(i)); // one call site, not two
    }
    EXPECT(d, names[0] == names[1]);
    d->is_quick = false;
}

static void *descend(void *context)
{
    struct descent *d = context;
    static const uint32_t targets[] = {1000, 2100, 5000, 100000};
    d->thread = new_thread(MAX_FRAMES);
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        d->target = targets[i];
        twice(d, one_frame_differs);
    }
    for (uint32_t i = 0; i < 6; i++) {
        d->target = i % 2 == 0 ? 3000 : 20000;
        d->seed = i;
        twice(d, wander_far);
    }
    unwind_thread_release(d->thread);
    free(d->thread);
    return NULL;
}

static void deep_stacks_are_walk_cache_and_right(void **state)
{
    (void)state;
    struct descent d = {.seed = 1, .returns = calloc(DEPTH_MAX, sizeof(uint64_t))};
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, descend, &d), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attributes);
    print_message("%u walks\n", d.walks);
    assert_int_equal(d.failed_line, 0);
    assert_true(d.walks > 500);
    assert_int_equal(d.in_full, 0);
    free(d.returns);
}

static void *descend_without_room(void *context)
{
    struct descent *d = context;
    d->thread = new_thread(MAX_FRAMES);
    unwind_thread_grow_to(d->thread, 4000);
    const uint32_t targets[] = {3000, 6000, 3000};
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        const uint32_t before = d->in_full;
        d->target = targets[i];
        d->odd = UINT32_MAX;
        level(d);
        level(d);
        EXPECT(d, d->in_full - before == (targets[i] > 4000 ? 2 : 0));
    }
    unwind_thread_release(d->thread);
    free(d->thread);
    return NULL;
}

static void what_is_too_deep_is_walked_in_full(void **state)
{
    (void)state;
    struct descent d = {.returns = calloc(DEPTH_MAX, sizeof(uint64_t))};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, descend_without_room, &d), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(d.failed_line, 0);
    free(d.returns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deep_stacks_are_walk_cache_and_right),
        cmocka_unit_test(what_is_too_deep_is_walked_in_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
