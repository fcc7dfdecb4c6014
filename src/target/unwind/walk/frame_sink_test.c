// SPDX-License-Identifier: MIT
#include "target/unwind/walk/frame_sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "session/wire.h"

// Return the pc of the frame that is `index` frames away from the entry.
static uint64_t pc_of(uint32_t index)
{
    return 0x1000 + index;
}

static struct unwind_walk collect(void *memory, uint32_t count, uint32_t max_frames)
{
    struct frame_sink sink;
    struct unwind_walk walk;
    frame_sink_init(&sink, memory, max_frames);
    for (uint32_t i = count; i > 0; i--) {
        frame_sink_push(&sink, pc_of(i - 1));
    }
    frame_sink_finish(&sink, &walk);
    return walk;
}

static void check_cut(const struct unwind_walk *walk, uint32_t count, uint32_t max_frames)
{
    uint32_t outer = max_frames / 2;
    uint32_t inner = walk->count - outer - 1;
    assert_true((walk->flags & UNWIND_CUT) != 0);
    assert_true(walk->count <= max_frames);
    assert_true(walk->count >= max_frames - max_frames / 8);
    for (uint32_t i = 0; i < outer; i++) {
        assert_true(walk->frames[i].pc == pc_of(i));
    }
    assert_true(walk->frames[outer].pc == WIRE_FRAME_CUT);
    for (uint32_t i = 0; i < inner; i++) {
        assert_true(walk->frames[outer + 1 + i].pc == pc_of(count - inner + i));
    }
}

static void stacks_of_every_depth(void **state)
{
    (void)state;
    static const uint32_t max_frames[] = {8, 9, 15, 16, 64, 127, 512};
    for (size_t m = 0; m < ARRAY_LEN(max_frames); m++) {
        void *memory = malloc(frame_sink_bytes(max_frames[m]));
        for (uint32_t count = 0; count < 3 * max_frames[m]; count++) {
            struct unwind_walk walk = collect(memory, count, max_frames[m]);
            uint64_t name = 0;
            for (uint32_t i = 0; i < walk.count; i++) {
                name = stack_name(name, walk.frames[i].pc);
                assert_true(walk.frames[i].name == name);
            }
            assert_true(walk.name == name);
            if (count > max_frames[m]) {
                check_cut(&walk, count, max_frames[m]);
                continue;
            }
            assert_int_equal(walk.count, count);
            assert_int_equal(walk.flags, 0);
            for (uint32_t i = 0; i < count; i++) {
                assert_true(walk.frames[i].pc == pc_of(i));
            }
        }
        free(memory);
    }
}

// A recursion that becomes one frame deeper adds one frame to the kept stack and changes no name,
// except once in cut_step.
static void the_cut_moves_in_steps(void **state)
{
    (void)state;
    void *memory = malloc(frame_sink_bytes(512));
    unsigned moves = 0;
    uint32_t last = 0;
    for (uint32_t count = 1000; count < 2000; count++) {
        struct frame_cut cut = frame_cut_of(count, 512);
        moves += last != cut.inner_from;
        last = cut.inner_from;
        assert_int_equal(cut.outer, 256);
        assert_true(count - cut.inner_from <= 255);
    }
    assert_in_range(moves, 1000 / 64, 1000 / 64 + 2);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_of_every_depth),
        cmocka_unit_test(the_cut_moves_in_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
