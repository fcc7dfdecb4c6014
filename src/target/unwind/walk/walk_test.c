// SPDX-License-Identifier: MIT
// Walks this test's own stack, from two starts by turns, one the other's caller, and stacks that
// are too deep to be returned whole. Mixes frames of an interpreter into
// its own.
#include "target/unwind/unwind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/hash.h"

#define CAPACITY   256u
#define MAX_FRAMES 16u

static struct unwind_thread *new_thread(uint32_t max_frames)
{
    return unwind_thread_init(malloc(unwind_thread_bytes(CAPACITY, max_frames)), CAPACITY,
                              max_frames);
}

// Return the caller's own frame, as a walk begins there after the return.
static NOINLINE void regs_of_caller(struct unwind_regs *out)
{
    *out = unwind_caller_regs();
}

// The outer walk begins in a frame that the inner one remembers: there is no step to make, but the
// frames further in are no longer a part of the stack.
static NOINLINE void walk_from_both(struct unwind_thread *thread)
{
    const struct unwind_regs outer = unwind_caller_regs();
    struct unwind_regs inner;
    regs_of_caller(&inner);
    struct unwind_walk walk;
    unwind_thread_walk(thread, &outer, &walk);
    const uint32_t count = walk.count;
    const uint64_t name = walk.name;
    assert_true(count > 1);
    for (unsigned i = 0; i < 3; i++) {
        unwind_thread_walk(thread, &inner, &walk);
        assert_int_equal(walk.count, count + 1);
        assert_int_equal(walk.frames[count - 1].name, name);
        assert_int_equal(unwind_thread_again(thread, &inner), walk.name);
        assert_int_equal(unwind_thread_check(thread, &inner, &walk), UNWIND_SAME);
        unwind_thread_walk(thread, &outer, &walk);
        assert_int_equal(walk.count, count);
        assert_int_equal(walk.name, name);
        assert_int_equal(unwind_thread_again(thread, &outer), name);
        assert_int_equal(unwind_thread_check(thread, &outer, &walk), UNWIND_SAME);
    }
}

static void a_walk_from_further_out_drops_what_lies_further_in(void **state)
{
    (void)state;
    struct unwind_thread *thread = new_thread(CAPACITY);
    walk_from_both(thread);
    free(thread);
}

static NOINLINE void descend(struct unwind_thread *thread, uint32_t levels, uint64_t *names)
{
    if (levels > 0) {
        descend(thread, levels - 1, names);
    } else {
        struct unwind_regs regs;
        struct unwind_walk walk;
        regs_of_caller(&regs);
        unwind_thread_walk(thread, &regs, &walk);
        names[0] = walk.name;
        names[1] = unwind_thread_again(thread, &regs);
    }
    __asm__ volatile("" : : "r"(names) : "memory"); // prevents a tail call
}

// The stack's name includes the mark of the cut; the innermost remembered frame's name does not.
static void what_was_cut_is_named_by_walks_only(void **state)
{
    (void)state;
    struct unwind_thread *thread = new_thread(MAX_FRAMES);
    uint64_t names[2];
    descend(thread, 0, names);
    assert_int_equal(names[1], names[0]);
    descend(thread, 2 * MAX_FRAMES, names);
    assert_int_not_equal(names[0], 0);
    assert_int_equal(names[1], 0);
    descend(thread, 0, names);
    assert_int_equal(names[1], names[0]);
    free(thread);
}

static NOINLINE void flush_and_ask(struct unwind_thread *thread)
{
    const struct unwind_regs regs = unwind_caller_regs();
    struct unwind_walk walk;
    unwind_thread_walk(thread, &regs, &walk);
    assert_int_equal(unwind_thread_again(thread, &regs), walk.name);
    unwind_flush();
    assert_int_equal(unwind_thread_again(thread, &regs), 0);
    const uint64_t name = walk.name;
    unwind_thread_walk(thread, &regs, &walk);
    assert_int_equal(walk.name, name);
    assert_int_equal(unwind_thread_again(thread, &regs), name);
}

static void a_flush_voids_what_is_walk_cache(void **state)
{
    (void)state;
    struct unwind_thread *thread = new_thread(CAPACITY);
    flush_and_ask(thread);
    free(thread);
}

// Mix frames into two of the stack's frames, this one and its caller, whose frame has `outer`.
static NOINLINE void mix_into_two(struct unwind_thread *thread, uint64_t outer)
{
    // A variable would be elsewhere under AddressSanitizer.
    const uint64_t own = (uint64_t)__builtin_frame_address(0);
    struct unwind_regs regs;
    struct unwind_walk walk;
    regs_of_caller(&regs);
    unwind_thread_walk(thread, &regs, &walk);
    const uint64_t inner_pc = walk.frames[walk.count - 1].pc;
    const uint64_t outermost_name = walk.frames[walk.count - 3].name;
    const uint32_t count = walk.count;
    const struct unwind_insert items[] = {{.pc = 1004, .place = UINT64_MAX}, // in no frame
                                          {.pc = 1003, .place = outer},
                                          {.pc = 1002, .place = own},
                                          {.pc = 1001, .place = own}};
    struct unwind_inserts inserts = {.items = items, .count = ARRAY_LEN(items)};
    unwind_thread_mix(thread, &walk, &inserts);
    assert_int_equal(walk.count, count + 1);
    assert_int_not_equal(inner_pc, walk.frames[count].pc);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(walk.frames[count - i].pc, 1001 + i);
    }
    assert_int_equal(walk.frames[count - 3].name, outermost_name);
    uint64_t name = outermost_name;
    for (uint32_t i = count - 2; i < walk.count; i++) {
        name = stack_name(name, walk.frames[i].pc);
        assert_int_equal(walk.frames[i].name, name);
    }
    assert_int_equal(walk.name, name);
    unwind_thread_walk(thread, &regs, &walk); // the remembered walk is still native
    assert_int_equal(walk.count, count);
    assert_int_equal(walk.frames[count - 1].pc, inner_pc);
    inserts.same = inserts.count;
    assert_int_equal(unwind_thread_mixed_again(thread, &regs, &inserts), name);
    unwind_thread_mix(thread, &walk, &inserts);
    assert_int_equal(walk.name, name);
    unwind_thread_walk(thread, &regs, &walk);
    inserts.same = 0;
    assert_int_equal(unwind_thread_mixed_again(thread, &regs, &inserts), 0);
    const uint64_t native = walk.name;
    unwind_thread_mix(thread, &walk, &(struct unwind_inserts){.count = 0});
    assert_int_equal(walk.name, native);
    __asm__ volatile("" : : : "memory"); // prevents a tail call
}

static NOINLINE void call_mix(struct unwind_thread *thread)
{
    mix_into_two(thread, (uint64_t)__builtin_frame_address(0));
    __asm__ volatile("" : : : "memory"); // prevents a tail call
}

static void inserted_frames_replace_the_frames_that_hold_their_places(void **state)
{
    (void)state;
    struct unwind_thread *thread = new_thread(CAPACITY);
    call_mix(thread);
    call_mix(thread);
    free(thread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_from_further_out_drops_what_lies_further_in),
        cmocka_unit_test(what_was_cut_is_named_by_walks_only),
        cmocka_unit_test(a_flush_voids_what_is_walk_cache),
        cmocka_unit_test(inserted_frames_replace_the_frames_that_hold_their_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
