// SPDX-License-Identifier: MIT
// stack_probe: see stack_probe.h. Compiled with frame pointers, as the hooks are.
#include "stack_probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "session/wire.h"
#include "stack_oracle.h"
#include "target/unwind/walk/frame_sink.h"
#include "target/unwind/walk/precise_walk.h"

void stack_probe_init(struct stack_probe *probe, uint32_t capacity, uint32_t max_frames)
{
    void *memory = malloc(unwind_thread_bytes(capacity, max_frames));
    void *other_memory = malloc(unwind_thread_bytes(capacity, max_frames));
    *probe = (struct stack_probe){
        .thread = unwind_thread_init(memory, capacity, max_frames),
        .seldom = unwind_thread_init(other_memory, capacity, max_frames),
        .sink_memory = malloc(frame_sink_bytes(max_frames)),
        .max_frames = max_frames,
        .last = calloc(max_frames, sizeof(struct unwind_frame)),
    };
}

void stack_probe_release(struct stack_probe *probe)
{
    free(probe->thread);
    free(probe->seldom);
    free(probe->sink_memory);
    free(probe->last);
    *probe = (struct stack_probe){0};
}

static void fail(struct stack_probe *probe, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void fail(struct stack_probe *probe, const char *format, ...)
{
    if (probe->failure[0] == 0) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(probe->failure, sizeof(probe->failure), format, arguments);
        va_end(arguments);
    }
}

static void compare(struct stack_probe *probe,
                    const char *oracle,
                    const struct unwind_walk *walk,
                    const struct unwind_walk *want)
{
    uint32_t i = 0;
    while (i < walk->count && i < want->count && walk->frames[i].pc == want->frames[i].pc &&
           walk->frames[i].name == want->frames[i].name) {
        i++;
    }
    if (i != walk->count || i != want->count) {
        fail(probe,
             "walk %llu: %u frames (flags %#x), %s finds %u; frame %u is %#llx, wanted %#llx",
             (unsigned long long)probe->walks, walk->count, walk->flags, oracle, want->count, i,
             i < walk->count ? (unsigned long long)walk->frames[i].pc : 0,
             i < want->count ? (unsigned long long)want->frames[i].pc : 0);
    }
}

struct oracle_walk {
    struct frame_sink sink;
    const struct unwind_regs *start;
    uint64_t entry_pc;
    bool reached; // the walk's first frame was reached
};

static void take_frame(void *context, const struct oracle_frame *frame)
{
    struct oracle_walk *walk = context;
    walk->reached = walk->reached || (frame->pc == walk->start->pc && frame->sp == walk->start->sp);
    if (walk->reached && frame->pc != 0) {
        const bool is_exact = frame->was_interrupted || frame->pc == walk->entry_pc;
        frame_sink_push(&walk->sink, frame->pc + (is_exact ? 1 : 0));
    }
}

static void compare_with_oracle(struct stack_probe *probe,
                                const struct unwind_regs *start,
                                const struct unwind_walk *walk)
{
    struct oracle_walk oracle = {.start = start, .entry_pc = probe->entry_pc};
    frame_sink_init(&oracle.sink, probe->sink_memory, probe->max_frames);
    stack_oracle_walk(probe->restorer_pc, take_frame, &oracle);
    struct unwind_walk want;
    frame_sink_finish(&oracle.sink, &want);
    if (probe->root_pc != 0 && (want.count == 0 || want.frames[0].pc != probe->root_pc)) {
        probe->oracle_gave_up++;
        return;
    }
    compare(probe, stack_oracle_name, walk, &want);
    probe->against_oracle++;
}

static void compare_with_precise(struct stack_probe *probe,
                                 const struct unwind_regs *start,
                                 const struct unwind_walk *walk)
{
    const struct stack_bounds unknown = {0};
    struct frame_sink sink;
    bool guessed = false;
    frame_sink_init(&sink, probe->sink_memory, probe->max_frames);
    enum walk_end end = precise_walk_self(&unknown, start, &sink, &guessed);
    struct unwind_walk want;
    frame_sink_finish(&sink, &want);
    compare(probe, "the precise walk", walk, &want);
    if ((end == WALK_FINISHED) == ((walk->flags & UNWIND_UNFINISHED) != 0)) {
        fail(probe, "walk %llu has flags %#x, the precise walk ended with %d",
             (unsigned long long)probe->walks, walk->flags, (int)end);
    }
    probe->against_precise++;
}

// Check that the shadow's return addresses are among the frames, in order, from the leaf outwards.
static void compare_with_shadow(struct stack_probe *probe,
                                const struct stack_tree *tree,
                                const struct unwind_walk *walk)
{
    unsigned left = tree->shadow_depth;
    uint32_t i = walk->count;
    while (i > 0 && walk->frames[i - 1].pc != WIRE_FRAME_CUT) {
        i--;
        if (left > 0 && walk->frames[i].pc == tree->shadow[left - 1]) {
            left--;
        }
    }
    if (i == 0 && left > 0) {
        fail(probe, "walk %llu: %u frames (flags %#x) lack the caller at depth %u, %#llx",
             (unsigned long long)probe->walks, walk->count, walk->flags, left,
             (unsigned long long)tree->shadow[left - 1]);
    }
}

// Check the header's promises about a result.
static void check_result(struct stack_probe *probe,
                         const struct unwind_regs *start,
                         const struct unwind_walk *walk)
{
    uint64_t name = 0;
    for (uint32_t i = 0; i < walk->count; i++) {
        name = stack_name(name, walk->frames[i].pc);
        if (walk->frames[i].name != name) {
            fail(probe, "frame %u of %u is misnamed (flags %#x)", i, walk->count, walk->flags);
        }
    }
    if (walk->count == 0 || walk->count > probe->max_frames || walk->name != name ||
        walk->frames[walk->count - 1].pc != start->pc || walk->changed_from > walk->count) {
        fail(probe, "bad result: count %u, changed from %u, name %#llx, flags %#x", walk->count,
             walk->changed_from, (unsigned long long)walk->name, walk->flags);
    }
    if ((walk->flags & UNWIND_NOT_REMEMBERED) != 0) {
        if (walk->changed_from != 0) {
            fail(probe, "changed_from is %u without a memory", walk->changed_from);
        }
        return;
    }
    if (walk->changed_from > probe->last_count ||
        memcmp(walk->frames, probe->last, walk->changed_from * sizeof(*walk->frames)) != 0) {
        fail(probe, "walk %llu: frames before changed_from = %u of %u have changed (flags %#x)",
             (unsigned long long)probe->walks, walk->changed_from, walk->count, walk->flags);
    }
    memcpy(probe->last, walk->frames, walk->count * sizeof(*walk->frames));
    probe->last_count = walk->count;
}

static void count_result(struct stack_probe *probe, const struct unwind_walk *walk)
{
    probe->walks++;
    probe->frames += walk->count;
    probe->frames_changed += walk->count - walk->changed_from;
    probe->foreign += (walk->flags & UNWIND_FOREIGN_STACK) != 0;
    probe->unfinished += (walk->flags & UNWIND_UNFINISHED) != 0;
    probe->guessed += (walk->flags & UNWIND_USED_FRAME_POINTER) != 0;
    probe->cut += (walk->flags & UNWIND_CUT) != 0;
    probe->walk_cache += (walk->flags & UNWIND_NOT_REMEMBERED) == 0;
}

static void compare_name(struct stack_probe *probe,
                         const struct unwind_regs *start,
                         const struct unwind_walk *walk)
{
    const uint64_t name = unwind_thread_again(probe->seldom, start);
    if (name == 0) {
        struct unwind_walk seldom;
        unwind_thread_walk(probe->seldom, start, &seldom);
        return;
    }
    probe->again++;
    if (name != walk->name) {
        fail(probe, "walk %llu of %u frames is %#llx, without it %#llx",
             (unsigned long long)probe->walks, walk->count, (unsigned long long)walk->name,
             (unsigned long long)name);
    }
}

void stack_probe_walk(struct stack_probe *probe,
                      const struct unwind_regs *start,
                      const struct stack_tree *tree,
                      uint64_t sample)
{
    struct unwind_walk walk;
    unwind_thread_walk(probe->thread, start, &walk);
    count_result(probe, &walk);
    uint32_t difference = unwind_thread_check(probe->thread, start, &walk);
    if (difference != UNWIND_SAME) {
        fail(probe, "walk %llu: frame %u of %u differs from a full walk (flags %#x)",
             (unsigned long long)probe->walks, difference, walk.count, walk.flags);
    }
    check_result(probe, start, &walk);
    compare_name(probe, start, &walk);
    if (!probe->has_async_nodes) {
        compare_with_shadow(probe, tree, &walk);
    }
    if (sample % 16 == 0) {
        compare_with_precise(probe, start, &walk);
    }
    // An interrupted setcontext or longjmp has no true stack: CFI does not describe the moment at
    // which half of the registers are new, and each unwinder ends in a nonsense of its own.
    bool is_nonsense = probe->root_pc != 0 && walk.frames[0].pc != probe->root_pc;
    probe->nonsense += is_nonsense;
    const bool is_guessed = (walk.flags & UNWIND_USED_FRAME_POINTER) != 0; // oracles stop there
    if (sample % 16 == 1 && !probe->oracle_is_blind && !is_guessed && !is_nonsense) {
        compare_with_oracle(probe, start, &walk);
    }
}

__attribute__((noinline)) void stack_probe_run(struct stack_tree *tree)
{
    const struct unwind_regs start = unwind_caller_regs();
    struct stack_probe *probe = tree->context;
    if (tree->probes_left == 0) {
        return;
    }
    tree->probes_left--;
    stack_probe_walk(probe, &start, tree, tree_random(tree) >> 8);
    if (probe->failure[0] != 0) {
        tree->probes_left = 0;
    }
}
