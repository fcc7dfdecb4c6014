// SPDX-License-Identifier: MIT
// walk: the incremental walk of a thread; see unwind.h for its use and walk_cache.h for its memory.
//
// The inner loop steps by cached rules inside the thread's known stack, where a load is a bounds
// check. All other cases go to walk_elsewhere(), which walks in full: stacks that may not be the
// thread's own, stacks deeper than the memory, frames that need the interpreter. Each thread's
// first walk is in full too, and finds the bounds of its stack.
#include "target/unwind/unwind.h"

#include <stdatomic.h>

#include "base/hash.h"
#include "base/page_alloc.h"
#include "base/sys.h"
#include "session/wire.h"
#include "target/unwind/environment/self_memory.h"
#include "target/unwind/walk/fast_path.h"
#include "target/unwind/walk/full_walk.h"
#include "target/unwind/walk/precise_walk.h"
#include "target/unwind/walk/step.h"

// Upper limit of deep memory in the process. All memory of the library is bounded.
#define MIXED_FRAMES_MIN 1024u
static struct page_budget g_grown = {.limit_bytes = (uint64_t)256 << 20};

static size_t walk_cache_bytes(uint32_t capacity)
{
    const size_t per_frame = sizeof(struct unwind_frame) + sizeof(struct walk_cache_state) +
                             REMEMBERED_WORDS_PER_FRAME * sizeof(struct walk_cache_word) +
                             sizeof(struct fresh_frame);
    return capacity * per_frame + sizeof(struct walk_cache_state);
}

// Lay out the walk cache in `memory` of walk_cache_bytes(). Nothing is remembered yet.
static void walk_cache_init(struct walk_cache *r, void *memory, uint32_t capacity)
{
    walk_cache_forget(r);
    r->capacity = capacity;
    r->frames = memory;
    r->states = (struct walk_cache_state *)(r->frames + capacity);
    r->words = (struct walk_cache_word *)(r->states + capacity + 1);
    r->fresh = (struct fresh_frame *)(r->words + (size_t)capacity * REMEMBERED_WORDS_PER_FRAME);
    r->states[0].first_word = 0;
}

size_t unwind_thread_bytes(uint32_t capacity, uint32_t max_frames)
{
    return sizeof(struct unwind_thread) + walk_cache_bytes(capacity) +
           max_frames * sizeof(struct unwind_frame) + SHORTCUT_COUNT * sizeof(struct path_cache) +
           frame_sink_bytes(max_frames);
}

struct unwind_thread *unwind_thread_init(void *memory, uint32_t capacity, uint32_t max_frames)
{
    struct unwind_thread *t = memory;
    *t = (struct unwind_thread){.generation = rule_cache_generation(),
                                .max_frames = max_frames,
                                .changed_from = UINT32_MAX};
    walk_cache_init(&t->walk_cache, t + 1, capacity);
    t->cut.frames = (struct unwind_frame *)(t->walk_cache.fresh + capacity);
    t->shortcuts.table = (struct path_cache *)(t->cut.frames + max_frames);
    frame_sink_init(&t->sink, t->shortcuts.table + SHORTCUT_COUNT, max_frames);
    return t;
}

void unwind_thread_grow_to(struct unwind_thread *thread, uint32_t capacity_max)
{
    thread->capacity_max = capacity_max;
}

static void free_mixed(struct mixed_stack *mixed, uint32_t max_frames)
{
    if (mixed != NULL) {
        page_budget_free(&g_grown, mixed, mixed_stack_bytes(mixed->capacity, max_frames));
    }
}

void unwind_thread_release(struct unwind_thread *thread)
{
    void *grown = thread->grown;
    struct mixed_stack *mixed = thread->mixed;
    thread->grown = NULL;
    thread->mixed = NULL;
    thread->capacity_max = 0;
    page_budget_free(&g_grown, grown, walk_cache_bytes(thread->walk_cache.capacity));
    free_mixed(mixed, thread->max_frames);
}

// The memory that may be loaded while stepping from one frame: [low, top).
struct window {
    uint64_t low;
    uint64_t top;
};

ALWAYS_INLINE bool load_in_window(void *context, uint64_t addr, uint64_t *word)
{
    const struct window *window = context;
    if (UNLIKELY(addr < window->low || addr > window->top - sizeof(*word))) {
        return false;
    }
    *word = memory_word(addr);
    return true;
}

// Step from `frame`, whose rule has a RULE_RARE flag. The frame becomes one to remember.
static NOINLINE enum step_result
step_rare(struct fresh_frame *frame, struct rule_view rules, struct frame_regs *regs, uint64_t top)
{
    struct window window = {.low = regs->sp, .top = top};
    if ((frame->rule & RULE_STOP) == 0) {
        return step_rule(frame->rule, regs, load_in_window, &window);
    }
    enum step_result result = STEP_UNFINISHED;
    switch (rule_stop_reason(frame->rule)) {
    case RULE_LAST:
        return STEP_LAST;
    case RULE_ENTRY:
        frame->regs.pc++;
        return STEP_LAST;
    case RULE_NO_TABLE:
        result = step_frame_pointer(regs, top, load_in_window, &window);
        if (result == STEP_OK) {
            place_behind_record(rules, regs);
            frame->rule = rule_frame_pointer(regs->sp - frame->regs.fp);
        }
        return result;
    case RULE_COMPLEX:
        return STEP_COMPLEX;
    case RULE_BROKEN:
        break;
    }
    return STEP_UNFINISHED;
}

// Do step_rule for rules without RULE_RARE.
ALWAYS_INLINE enum step_result step_common(uint64_t rule, struct frame_regs *regs, uint64_t top)
{
    struct window window = {.low = regs->sp, .top = top};
    uint64_t base = (rule & RULE_CFA_FP) != 0 ? regs->fp : regs->sp;
    uint64_t cfa = base + (uint64_t)rule_cfa_offset(rule);
    uint64_t ret_addr = 0;
    uint64_t fp = regs->fp;
    if (!load_in_window(&window, cfa + (uint64_t)rule_ret_offset(rule), &ret_addr) ||
        ((rule & RULE_FP_SAVED) != 0 &&
         !load_in_window(&window, cfa + (uint64_t)rule_fp_offset(rule), &fp))) {
        return STEP_UNREADABLE;
    }
    *regs = (struct frame_regs){.pc = arch_strip(ret_addr), .sp = cfa, .fp = fp};
    return STEP_OK;
}

// The progress of a walk.
struct progress {
    uint32_t fresh_count;
    uint32_t known; // of the remembered frames, [0, known) stay
};

// Return the sp at which a walk would be in the innermost of the first `known` remembered frames.
ALWAYS_INLINE uint64_t sp_to_meet(const struct walk_cache *r, uint32_t known)
{
    return known > 0 ? r->states[known - 1].sp : UINT64_MAX;
}

// Return the rule of `pc`. First try the remembered frame `likely - 1`, at the same distance from
// the leaf: that needs no hash lookup, and its address is predictable.
ALWAYS_INLINE uint64_t rule_by_memory(const struct walk_cache *r,
                                      uint32_t likely,
                                      struct rule_view rules,
                                      uint64_t pc)
{
    if (likely - 1 < r->count && r->frames[likely - 1].pc == pc) {
        const uint64_t rule = r->states[likely - 1].rule;
        // A frame's rule differs from its pc's rule if the frame was guessed or the walk ended
        // there.
        if (LIKELY((rule & (RULE_STOP | RULE_GUESSED)) == 0)) {
            return rule;
        }
    }
    return rule_cache_get(rules, pc);
}

// Whether the clock may be read: strict seccomp mode, which also forbids all system calls, forbids
// it.
static bool can_tell_moments(const struct unwind_thread *t)
{
    return t->clock == PROOF_CLOCK_TELLS && !sys_is_forbidden();
}

// Return how many frames of a deep stack must be intact to prove those further out: see proof.h.
static uint32_t evidence_needed(const struct unwind_thread *t)
{
    if (!can_tell_moments(t)) {
        return UINT32_MAX;
    }
    const struct moment now = arch_moment();
    return proof_calls_between(&t->proved, &now);
}

// Step until the rest is proved or the stack ends (STEP_OK, STEP_LAST, STEP_UNFINISHED; the fresh
// frames are final), or until this kind of walk cannot continue.
ALWAYS_INLINE enum step_result
walk_fresh(struct unwind_thread *t, const struct unwind_regs *start, struct progress *progress)
{
    struct rule_view rules = rule_cache_view();
    const struct walk_cache copy = t->walk_cache; // a copy, which no store can change
    const struct walk_cache *r = &copy;
    const uint64_t top = t->bounds.top;
    struct frame_regs regs = {.pc = start->pc, .sp = start->sp, .fp = start->fp};
    struct fresh_frame *frame = r->fresh;
    struct fresh_frame *const end = frame + r->capacity;
    uint32_t known = walk_cache_from_sp(r, r->count, regs.sp);
    struct proof proof = {.evidence = UINT32_MAX, .from = known};
    if (UNLIKELY(r->count > PROOF_DEEP)) {
        proof.evidence = evidence_needed(t);
        known = proof_extend(&proof, r, known);
    } else {
        known = walk_cache_intact_from(r, 0, known);
        proof.from = 0;
    }
    uint64_t meet_sp = sp_to_meet(r, known);
    enum step_result result = STEP_OK;
    for (uint32_t likely = r->count;; frame++, likely--) {
        if (regs.sp >= meet_sp) {
            known = walk_cache_from_sp(r, known, regs.sp);
            if (known > 0 && walk_cache_is_at(r, known - 1, &regs)) {
                const uint32_t met = known;
                known = LIKELY(proof.from == 0) ? known : proof_extend(&proof, r, known);
                if (LIKELY(known == met)) {
                    break;
                }
            }
            meet_sp = sp_to_meet(r, known);
        }
        if (UNLIKELY(frame == end || !step_may_be_code(regs.pc))) {
            return frame == end ? STEP_TOO_DEEP : STEP_UNREADABLE;
        }
        frame->regs = regs;
        frame->rule = rule_by_memory(r, likely, rules, regs.pc);
        if (LIKELY((frame->rule & RULE_RARE) == 0)) {
            result = step_common(frame->rule, &regs, top);
        } else {
            struct frame_regs caller = regs; // a copy, so that regs can stay in registers
            result = step_rare(frame, rules, &caller, top);
            regs = caller;
            rules.is_guess = rules.is_guess || rule_leads_to_guesses(frame->rule);
        }
        if (UNLIKELY(result != STEP_OK)) {
            known = 0;
            frame++;
            break;
        }
        if (UNLIKELY(regs.sp <= frame->regs.sp)) {
            return STEP_UNREADABLE;
        }
    }
    *progress = (struct progress){.fresh_count = (uint32_t)(frame - r->fresh), .known = known};
    return known + progress->fresh_count <= r->capacity ? result : STEP_TOO_DEEP;
}

// Make the result of the remembered walk.
ALWAYS_INLINE void publish(struct unwind_thread *t, struct unwind_walk *walk)
{
    const struct walk_cache *r = &t->walk_cache;
    uint32_t changed = t->changed_from < r->count ? t->changed_from : r->count;
    t->changed_from = UINT32_MAX;
    t->mixed_same = changed < t->mixed_same ? changed : t->mixed_same;
    if (UNLIKELY(r->count > t->max_frames)) {
        cut_stack_make(&t->cut, t->max_frames, r->frames, r->count, changed, walk);
    } else {
        if (UNLIKELY(t->cut.inner_from != 0)) {
            uint32_t outer = frame_sink_outer_max(t->max_frames);
            changed = changed < outer ? changed : outer;
            t->cut.inner_from = 0;
        }
        *walk = (struct unwind_walk){.frames = r->frames,
                                     .count = r->count,
                                     .changed_from = changed,
                                     .name = r->frames[r->count - 1].name};
    }
    uint32_t flags = r->states[r->count - 1].flags;
    walk->flags |= ((flags & REMEMBERED_GUESSED) != 0 ? UNWIND_USED_FRAME_POINTER : 0) |
                   ((flags & REMEMBERED_UNFINISHED) != 0 ? UNWIND_UNFINISHED : 0);
}

// Note that all remembered frames have just been proved.
static NOINLINE void note_proved(struct unwind_thread *t)
{
    if (t->clock == PROOF_CLOCK_UNKNOWN) {
        t->clock = arch_has_moments() ? PROOF_CLOCK_TELLS : PROOF_CLOCK_NONE;
    }
    if (can_tell_moments(t)) {
        t->proved = arch_moment();
    }
}

ALWAYS_INLINE bool step_cannot_be_walk_cache(enum step_result result)
{
    return result >= STEP_COMPLEX;
}

// Walk inside the thread's known stack, and remember the result unless that took at most `few`
// steps (0: always remember). STEP_OK: the walk met a remembered frame. If this kind of walk cannot
// do it, the remembered walk is unchanged.
ALWAYS_INLINE enum step_result walk_own_stack(struct unwind_thread *t,
                                              const struct unwind_regs *start,
                                              uint32_t few,
                                              struct progress *p)
{
    struct walk_cache *r = &t->walk_cache;
    const enum step_result result = walk_fresh(t, start, p);
    if (UNLIKELY(step_cannot_be_walk_cache(result))) {
        return result;
    }
    if (result != STEP_OK || p->fresh_count > few || few == 0) {
        const uint32_t changed =
            walk_cache_replace(r, p->known, r->fresh, p->fresh_count, result == STEP_UNFINISHED);
        t->changed_from = changed < t->changed_from ? changed : t->changed_from;
        if (UNLIKELY(r->count > t->max_frames)) {
            walk_cache_hide_tip(r); // its name is not the name of the stack, which is cut
        }
        if (UNLIKELY(r->count > PROOF_DEEP)) {
            note_proved(t);
        }
    }
    return result;
}

static void forget(struct unwind_thread *t)
{
    walk_cache_forget(&t->walk_cache);
    path_cache_forget_all(&t->shortcuts);
}

// Make room for deeper stacks than were met so far; false if there is none. It forgets the
// remembered walk, so that the old memory need not be copied.
static bool grow(struct unwind_thread *t)
{
    struct walk_cache *r = &t->walk_cache;
    const uint32_t old_capacity = r->capacity;
    if (old_capacity >= t->capacity_max) {
        return false;
    }
    const uint32_t capacity =
        old_capacity > t->capacity_max / 4 ? t->capacity_max : old_capacity * 4;
    void *memory = page_budget_alloc(&g_grown, walk_cache_bytes(capacity));
    if (memory == NULL) {
        return false;
    }
    void *old = t->grown;
    const uint64_t blocked = signals_block(); // a handler may leave by longjmp
    forget(t);
    t->changed_from = 0;
    walk_cache_init(r, memory, capacity);
    t->grown = memory;
    signals_restore(blocked);
    page_budget_free(&g_grown, old, walk_cache_bytes(old_capacity));
    return true;
}

// Do walk_own_stack(), in more memory if there is too little.
static NOINLINE enum step_result
walk_growing(struct unwind_thread *t, const struct unwind_regs *start, struct progress *p)
{
    enum step_result result = STEP_TOO_DEEP;
    while (result == STEP_TOO_DEEP && grow(t)) {
        result = walk_own_stack(t, start, 0, p);
    }
    return result;
}

static enum walk_end
walk_in_full(struct unwind_thread *t, const struct unwind_regs *start, struct full_walk *full)
{
    struct self_memory memory = self_memory_over(&t->bounds);
    *full = (struct full_walk){.memory = &memory.reader, .own = t->bounds};
    t->sink.count = 0;
    enum walk_end end = full_walk_run(full, start, &t->sink);
    full->memory = NULL;
    return end;
}

static NOINLINE void
walk_elsewhere(struct unwind_thread *t, const struct unwind_regs *start, struct unwind_walk *walk)
{
    struct full_walk full;
    bool is_own = stack_bounds_hold(&t->bounds, start->sp);
    enum walk_end end = walk_in_full(t, start, &full);
    if (!is_own && end != WALK_COMPLEX && full.rising &&
        stack_bounds_learn(&t->bounds, start->sp, full.last_sp)) {
        forget(t);
        is_own = true;
        struct progress progress;
        enum step_result result = walk_own_stack(t, start, 0, &progress);
        if (result == STEP_TOO_DEEP) {
            result = walk_growing(t, start, &progress);
        }
        if (!step_cannot_be_walk_cache(result)) {
            t->changed_from = 0;
            publish(t, walk);
            return;
        }
    }
    if (end == WALK_COMPLEX) {
        t->sink.count = 0;
        end = precise_walk_self(&t->bounds, start, &t->sink, &full.used_frame_pointer);
    }
    frame_sink_finish(&t->sink, walk);
    walk->flags |= UNWIND_NOT_REMEMBERED | (end != WALK_FINISHED ? UNWIND_UNFINISHED : 0) |
                   (full.used_frame_pointer ? UNWIND_USED_FRAME_POINTER : 0) |
                   (!is_own || !full.rising ? UNWIND_FOREIGN_STACK : 0);
}

void unwind_thread_foresee(struct unwind_thread *thread)
{
    stack_bounds_foresee(&thread->bounds);
}

void unwind_thread_walk(struct unwind_thread *thread,
                        const struct unwind_regs *start,
                        struct unwind_walk *walk)
{
    uint64_t generation = rule_cache_generation();
    if (UNLIKELY(thread->generation != generation)) {
        thread->generation = generation;
        forget(thread);
    }
    bool is_own = stack_bounds_hold(&thread->bounds, start->sp) ||
                  stack_bounds_extend(&thread->bounds, start->sp);
    struct progress progress;
    enum step_result result =
        LIKELY(is_own) ? walk_own_stack(thread, start, 0, &progress) : STEP_UNREADABLE;
    if (UNLIKELY(result == STEP_TOO_DEEP)) {
        result = walk_growing(thread, start, &progress);
    }
    if (UNLIKELY(step_cannot_be_walk_cache(result))) {
        walk_elsewhere(thread, start, walk);
        return;
    }
    publish(thread, walk);
}

// Walk, but only for the name: few steps leave the remembered walk unchanged, and so does a
// path_cache.
uint64_t unwind_again_by_steps(struct unwind_thread *thread, const struct unwind_regs *start)
{
    const struct walk_cache *r = &thread->walk_cache;
    const struct frame_regs regs = {.pc = start->pc, .sp = start->sp, .fp = start->fp};
    if (UNLIKELY(r->count - 1 >= thread->max_frames - UNWIND_AGAIN_STEPS || // none: wraps around
                 thread->generation != rule_cache_generation() ||
                 !stack_bounds_hold(&thread->bounds, regs.sp))) {
        return 0;
    }
    uint64_t name = path_cache_take(&thread->shortcuts, r, &regs);
    if (LIKELY(name != 0)) {
        return name;
    }
    struct progress p;
    if (UNLIKELY(walk_own_stack(thread, start, UNWIND_AGAIN_STEPS, &p) != STEP_OK ||
                 p.known + p.fresh_count > thread->max_frames)) {
        return 0;
    }
    name = r->frames[p.known - 1].name;
    if (p.fresh_count <= UNWIND_AGAIN_STEPS) {
        for (uint32_t i = p.fresh_count; i > 0; i--) {
            name = stack_name(name, r->fresh[i - 1].regs.pc);
        }
    } else {
        name = r->frames[r->count - 1].name;
    }
    if (p.fresh_count > 0 && path_cache_is_worth(&thread->shortcuts, &regs, name)) {
        path_cache_learn(&thread->shortcuts, r, p.known - 1, r->fresh, p.fresh_count, name);
    }
    return name;
}

uint64_t unwind_thread_again(struct unwind_thread *thread, const struct unwind_regs *start)
{
    return unwind_again(thread, start);
}

// Replace the memory of the mixed stack by a larger one, in which nothing is remembered.
static bool grow_mixed(struct unwind_thread *t)
{
    struct mixed_stack *old = t->mixed;
    const uint32_t capacity = old != NULL ? old->capacity * 4 : MIXED_FRAMES_MIN;
    void *memory = capacity <= UNWIND_FRAMES_MAX
                       ? page_budget_alloc(&g_grown, mixed_stack_bytes(capacity, t->max_frames))
                       : NULL;
    if (memory == NULL) {
        return false;
    }
    const uint64_t blocked = signals_block(); // a handler may leave by longjmp
    t->mixed = mixed_stack_init(memory, capacity, t->max_frames);
    signals_restore(blocked);
    free_mixed(old, t->max_frames);
    return true;
}

void unwind_thread_mix(struct unwind_thread *thread,
                       struct unwind_walk *walk,
                       const struct unwind_inserts *inserts)
{
    if ((walk->flags & UNWIND_NOT_REMEMBERED) != 0) {
        return;
    }
    const struct walk_cache *r = &thread->walk_cache;
    uint32_t changed = UINT32_MAX;
    do {
        struct mixed_stack *m = thread->mixed;
        changed = m == NULL
                      ? changed
                      : mixed_stack_make(m, r, thread->bounds.top, thread->mixed_same, inserts);
    } while (changed == UINT32_MAX && grow_mixed(thread));
    thread->mixed_same = UINT32_MAX;
    if (changed == UINT32_MAX) {
        return;
    }
    const uint32_t flags = walk->flags & ~(uint32_t)UNWIND_CUT;
    mixed_stack_result(thread->mixed, thread->max_frames, changed, walk);
    walk->flags |= flags;
}

uint64_t unwind_thread_mixed_again(const struct unwind_thread *thread,
                                   const struct unwind_regs *start,
                                   const struct unwind_inserts *inserts)
{
    const struct mixed_stack *m = thread->mixed;
    const bool is_same = m != NULL && thread->mixed_same >= m->native_count &&
                         thread->changed_from >= m->native_count && // by unwind_thread_again
                         inserts->same == inserts->count && unwind_same(thread, start) != 0;
    return is_same ? mixed_stack_name(m) : 0;
}

uint32_t unwind_thread_check(struct unwind_thread *thread,
                             const struct unwind_regs *start,
                             const struct unwind_walk *walk)
{
    if ((walk->flags & UNWIND_NOT_REMEMBERED) != 0) {
        return UNWIND_SAME; // was a full walk itself
    }
    struct full_walk full;
    struct unwind_walk again;
    enum walk_end end = walk_in_full(thread, start, &full);
    frame_sink_finish(&thread->sink, &again);
    uint32_t i = 0;
    while (i < walk->count && i < again.count && walk->frames[i].pc == again.frames[i].pc &&
           walk->frames[i].name == again.frames[i].name) {
        i++;
    }
    bool same_end = ((walk->flags & UNWIND_UNFINISHED) != 0) == (end != WALK_FINISHED);
    return i == walk->count && i == again.count && same_end ? UNWIND_SAME : i;
}
