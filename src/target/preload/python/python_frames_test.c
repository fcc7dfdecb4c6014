// SPDX-License-Identifier: MIT
// Builds chains of frames in the forms of CPython 3.10 to 3.14, changes them at random as an
// interpreter does, and compares each walk with one that remembers nothing.
#include "target/preload/python/python_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/test_support/random_numbers.h"
#include "target/preload/python/test_support/python_objects.h"

enum {
    DEPTH_MAX = 200,
    CAPACITY = 256,
    CODES = 6,
    FRAME_BYTES = 128,
    ROUNDS = 20000,
};

struct frame {
    _Alignas(16) uint8_t bytes[FRAME_BYTES];
};

struct world {
    const struct python_layout *layout;
    uint64_t random;
    uint8_t state[256]; // PyThreadState
    struct python_code_object codes[CODES];
    struct frame frames[DEPTH_MAX];  // [0] is the outermost
    struct frame entries[DEPTH_MAX]; // the variables of the calls, outermost first
    bool is_entry[DEPTH_MAX];
    bool has_throws; // 3.11: into suspended generators
    uint32_t depth;
    struct python_frames *remembered;
    struct python_frames *fresh;
    struct unwind_insert taken[CAPACITY]; // of the last walk that was taken
    uint32_t taken_count;
};

static uint32_t below(struct world *w, uint32_t end)
{
    return (uint32_t)(next_random(&w->random) % end);
}

static void make_code(const struct world *w, struct python_code_object *c, uint32_t number)
{
    const char text[] = {(char)('a' + number % 26), '\0'};
    python_make_code(w->layout, c, text, 77 + number, text, 1 + number);
}

static struct world *new_world(uint32_t version, uint64_t seed)
{
    struct world *w = aligned_alloc(16, (sizeof(*w) + 15) / 16 * 16);
    memset(w, 0, sizeof(*w));
    w->layout = python_layout_of(version);
    w->random = seed;
    for (uint32_t i = 0; i < CODES; i++) {
        make_code(w, &w->codes[i], i);
    }
    w->remembered = python_frames_init(calloc(1, python_frames_bytes(CAPACITY)), CAPACITY);
    w->fresh = calloc(1, python_frames_bytes(CAPACITY));
    return w;
}

static void free_world(struct world *w)
{
    free(w->remembered);
    free(w->fresh);
    free(w);
}

// Let frame `i` begin some instruction. In 3.10 one that no call runs is before its YIELD_FROM.
static void go_to(struct world *w, uint32_t i)
{
    const struct python_layout *l = w->layout;
    uint64_t code;
    memcpy(&code, w->frames[i].bytes + l->frame.code, sizeof(code));
    uint32_t unit = below(w, 3);
    if (l->frame.depth != 0) {
        unit = w->is_entry[i] ? 2 * below(w, 2) : 1;
        const bool is_traced = w->is_entry[i] && below(w, 10) == 0; // has a depth, too
        python_put(&w->frames[i], l->frame.depth, !w->is_entry[i] || is_traced ? 1 : UINT32_MAX, 4);
    }
    python_put_instruction(l, &w->frames[i], (const struct python_code_object *)code, unit);
}

static void run_to(struct world *w, uint32_t i)
{
    const struct python_code_object *code = &w->codes[below(w, CODES)];
    python_put(&w->frames[i], w->layout->frame.code, (uint64_t)code, 8);
    go_to(w, i);
}

// The variable of the call that runs frame `i`.
static uint64_t entry_of(const struct world *w, uint32_t i)
{
    uint32_t calls = 0;
    for (uint32_t k = 0; k < i; k++) {
        calls += w->is_entry[k + 1];
    }
    return (uint64_t)&w->entries[calls];
}

static void link_frame(struct world *w, uint32_t i)
{
    const struct python_layout *l = w->layout;
    const uint64_t outer = i > 0 ? (uint64_t)&w->frames[i - 1] : 0;
    python_put(&w->frames[i], l->frame.previous, outer, 8);
    if (l->frame.owner == 0) {
        const bool keeps_mark = w->has_throws && i > 0 && below(w, 20) == 0;
        python_put(&w->frames[i], l->frame.is_entry, w->is_entry[i] || keeps_mark, 1);
        if (w->is_entry[i]) {
            python_put((void *)entry_of(w, i), l->cframe.previous, i > 0 ? entry_of(w, i - 1) : 0,
                       8);
        }
        return;
    }
    python_put(&w->frames[i], l->frame.owner, below(w, 3), 1);
    if (w->is_entry[i]) {
        python_put((void *)entry_of(w, i), l->frame.owner, l->frame.c_stack, 1);
        python_put((void *)entry_of(w, i), l->frame.previous, outer, 8);
        python_put(&w->frames[i], l->frame.previous, entry_of(w, i), 8);
    }
}

// Let the thread's state lead to the innermost frame.
static void link_state(struct world *w)
{
    static struct frame cframe;
    const struct python_layout *l = w->layout;
    const uint64_t innermost = w->depth > 0 ? (uint64_t)&w->frames[w->depth - 1] : 0;
    uint64_t first = innermost;
    if (l->frame.owner == 0) {
        for (uint32_t i = 0; i < w->depth; i++) { // each call leads to its innermost frame
            python_put((void *)entry_of(w, i), l->cframe.frame, (uint64_t)&w->frames[i], 8);
        }
        const uint64_t call = w->depth > 0 ? entry_of(w, w->depth - 1) : 0;
        python_put(w->state, l->thread.cframe, call, 8);
        first = l->thread.cframe != 0 ? innermost : call;
    } else if (l->cframe.bytes != 0) {
        python_put(&cframe, l->cframe.frame, innermost, 8);
        first = (uint64_t)&cframe;
    }
    python_put(w->state, l->thread.frame, first, 8);
}

// Return from some frames, let the innermost one that stays go on, call others, and sometimes
// replace a code object that no frame of those that stay runs.
static void go_on(struct world *w)
{
    const uint32_t returned = below(w, 4) == 0 ? below(w, w->depth + 1) : below(w, 3);
    w->depth -= returned < w->depth ? returned : w->depth;
    if (below(w, 10) == 0) {
        struct python_code_object *code = &w->codes[below(w, CODES)];
        bool is_run = false;
        for (uint32_t i = 0; i < w->depth; i++) {
            uint64_t runs;
            memcpy(&runs, w->frames[i].bytes + w->layout->frame.code, sizeof(runs));
            is_run = is_run || runs == (uint64_t)code;
        }
        if (!is_run) {
            make_code(w, code, below(w, 20));
        }
    }
    if (w->depth > 0 && below(w, 3) != 0) {
        go_to(w, w->depth - 1);
    }
    for (uint32_t calls = below(w, 5) * below(w, 5); calls > 0 && w->depth < DEPTH_MAX; calls--) {
        const bool calls_rarely = w->layout->frame.depth == 0;
        w->is_entry[w->depth] = w->depth == 0 || (below(w, 4) == 0) == calls_rarely;
        run_to(w, w->depth);
        link_frame(w, w->depth++);
    }
    link_state(w);
}

static struct unwind_inserts walk(struct world *w, struct python_frames *frames)
{
    struct python_frame innermost;
    python_chain_begin(w->layout, (uint64_t)w->state, &innermost);
    assert_true(python_frames_walk(frames, w->layout, &innermost));
    return python_frames_inserts(frames);
}

static void check_walk(struct world *w)
{
    const struct unwind_inserts found = walk(w, w->remembered);
    memset(w->fresh, 0, python_frames_bytes(CAPACITY));
    const struct unwind_inserts whole = walk(w, python_frames_init(w->fresh, CAPACITY));
    assert_int_equal(whole.count, w->depth);
    assert_int_equal(found.count, whole.count);
    for (uint32_t i = 0; i < found.count; i++) {
        assert_int_equal(found.items[i].pc, whole.items[i].pc);
        assert_int_equal(found.items[i].place, whole.items[i].place);
        assert_int_equal(found.items[i].place, entry_of(w, i));
    }
    assert_true(found.same <= found.count && found.same <= w->taken_count);
    assert_memory_equal(found.items, w->taken, found.same * sizeof(*w->taken));
    if (below(w, 3) != 0) {
        python_frames_taken(w->remembered);
        w->taken_count = found.count;
        memcpy(w->taken, found.items, found.count * sizeof(*w->taken));
    }
}

static void each_walk_is_as_if_nothing_were_remembered(void **state)
{
    (void)state;
    static const uint32_t versions[] = {0x030a, 0x030b, 0x030c, 0x030d, 0x030e};
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct world *w = new_world(versions[i], 1 + i);
        w->has_throws = true;
        for (uint32_t round = 0; round < ROUNDS; round++) {
            go_on(w);
            check_walk(w);
        }
        free_world(w);
    }
}

static void what_stays_is_not_read_again(void **state)
{
    (void)state;
    struct world *w = new_world(0x030b, 1);
    for (uint32_t i = 0; i < 50; i++) {
        w->is_entry[i] = i == 0;
        run_to(w, i);
        link_frame(w, w->depth++);
    }
    link_state(w);
    (void)walk(w, w->remembered);
    python_frames_taken(w->remembered);
    python_put(&w->frames[49], w->layout->frame.instruction, 0, 8);
    assert_int_equal(walk(w, w->remembered).same, 49);
    assert_int_equal(w->remembered->fresh_count, 1);
    free_world(w);
}

static void a_deeper_stack_needs_more_room(void **state)
{
    (void)state;
    struct world *w = new_world(0x030d, 1);
    for (uint32_t i = 0; i < 100; i++) {
        w->is_entry[i] = i == 0;
        run_to(w, i);
        link_frame(w, w->depth++);
    }
    link_state(w);
    struct python_frame innermost;
    python_chain_begin(w->layout, (uint64_t)w->state, &innermost);
    struct python_frames *small = python_frames_init(calloc(1, python_frames_bytes(64)), 64);
    assert_false(python_frames_walk(small, w->layout, &innermost));
    assert_int_equal(python_frames_inserts(small).count, 0);
    free(small);
    free_world(w);
}

static void what_cannot_be_read_stays_native(void **state)
{
    (void)state;
    struct world *w = new_world(0x030b, 1);
    for (uint32_t i = 0; i < 10; i++) {
        w->is_entry[i] = i == 0;
        run_to(w, i);
        link_frame(w, w->depth++);
    }
    link_state(w);
    python_put(&w->frames[4], w->layout->frame.previous, 16, 8); // leads nowhere
    assert_int_equal(walk(w, w->remembered).count, 6);
    python_put(&w->frames[6], w->layout->frame.code, 8, 8); // no code
    const struct unwind_inserts found = walk(w, w->remembered);
    assert_int_equal(found.count, 3);
    assert_int_equal(found.same, 0);
    free_world(w);
}

static int prepare(void **state)
{
    (void)state;
    return python_code_prepare() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_walk_is_as_if_nothing_were_remembered),
        cmocka_unit_test(what_stays_is_not_read_again),
        cmocka_unit_test(a_deeper_stack_needs_more_room),
        cmocka_unit_test(what_cannot_be_read_stays_native),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
