// SPDX-License-Identifier: MIT
// program_api: the functions that include/cairn.h calls: blocks of the program's own allocators,
// marks, events, and queries.
//
// The program finds the table by its name, cairn_api_v1. Custom blocks are recorded as all others,
// but with WIRE_CUSTOM_BLOCK in their addresses: a pool's block may have the address of the block
// from malloc that contains it. A mark is a TEXT record on the thread's lane, so it has its own
// moment among the thread's events.
//
// Compiled with frame pointers: unwind_caller_regs() reads them. Context: T, any caller; a mark
// from a handler that interrupted a hook of its thread is dropped. errno is kept.
#include <cairn.h>
#include <string.h>

#include "session/wire.h"
#include "target/preload/exports/program_api.h"
#include "target/preload/process/stats_query.h"
#include "target/preload/record/record.h"
#include "target/preload/record/record_guard.h"
#include "target/preload/record/record_named.h"
#include "target/preload/stacks/name_frames.h"
#include "target/producer/entry/lane_entry.h"

static const void *custom(const void *block)
{
    return (const void *)((uintptr_t)block | WIRE_CUSTOM_BLOCK);
}

static void report_alloc(const void *block, size_t size_bytes)
{
    if (block != NULL) {
        const struct unwind_regs caller = unwind_caller_regs();
        record_alloc(&caller, custom(block), size_bytes);
    }
}

static void report_realloc(const void *old_block, const void *block, size_t size_bytes)
{
    const struct unwind_regs caller = unwind_caller_regs();
    if (old_block == NULL) {
        if (block != NULL) {
            record_alloc(&caller, custom(block), size_bytes);
        }
    } else if (block == NULL) {
        record_free(custom(old_block));
    } else {
        record_realloc(&caller, custom(old_block), custom(block), size_bytes,
                       (struct freed_note){0});
    }
}

static void report_free(const void *block)
{
    if (block != NULL) {
        record_free(custom(block));
    }
}

static uint64_t name_pc(enum name_kind kind, const char *name)
{
    return name_frame_pc(kind, name != NULL ? name : "");
}

static void pool_alloc(const char *pool, const void *block, size_t size_bytes)
{
    if (block != NULL) {
        const struct unwind_regs caller = unwind_caller_regs();
        record_named_alloc(&caller, name_pc(NAME_POOL, pool), custom(block), size_bytes);
    }
}

static void
pool_realloc(const char *pool, const void *old_block, const void *block, size_t size_bytes)
{
    const struct unwind_regs caller = unwind_caller_regs();
    if (block == NULL) {
        report_free(old_block);
    } else if (old_block == NULL) {
        record_named_alloc(&caller, name_pc(NAME_POOL, pool), custom(block), size_bytes);
    } else {
        record_named_realloc(&caller, name_pc(NAME_POOL, pool), custom(old_block), custom(block),
                             size_bytes);
    }
}

static void event(const char *name, uint64_t weight)
{
    const struct unwind_regs caller = unwind_caller_regs();
    record_named_event(&caller, name_pc(NAME_EVENT, name), weight);
}

// Whether sums are known: with --sample most blocks are only counted, and not by thread.
static bool has_sums(const struct thread_state *t)
{
    return t->producer.session->sample_bytes == 0;
}

// Send one query, and wait.
static enum stats_query_end
ask_once(enum stats_query_what what, uint32_t scope, uint64_t values[static ANSWER_VALUES])
{
    struct thread_state *t = guard_enter((uint64_t)__builtin_frame_address(0));
    if (t == NULL) {
        return STATS_QUERY_OVER;
    }
    uint32_t number = 0;
    struct session_header *session = t->producer.session;
    struct lane_header *lane = t->producer.lane;
    const bool is_possible = has_sums(t);
    const bool is_asked = is_possible && stats_query_ask(&t->producer, what, scope, &number);
    if (is_possible && !is_asked) {
        process_leave();
    }
    guard_leave(t);
    return is_asked ? stats_query_await(session, lane, number, values) : STATS_QUERY_OVER;
}

// Query until there is a response. False: there is none.
static bool ask(enum stats_query_what what, uint32_t scope, uint64_t values[static ANSWER_VALUES])
{
    enum stats_query_end end;
    do { // again if a handler of this thread sent a query meanwhile
        end = ask_once(what, scope, values);
    } while (end == STATS_QUERY_SUPERSEDED);
    return end == STATS_QUERY_ANSWERED;
}

static int stats(uint32_t whose, struct cairn_stats *out)
{
    uint64_t values[ANSWER_VALUES];
    if (!ask(whose == CAIRN_THREAD ? STATS_QUERY_THREAD : STATS_QUERY_PROCESS, 0, values)) {
        return 0;
    }
    *out = (struct cairn_stats){
        .allocations = values[ANSWER_ALLOCATIONS],
        .allocated_bytes = values[ANSWER_ALLOCATED_BYTES],
        .frees = values[ANSWER_FREES],
        .freed_bytes = values[ANSWER_FREED_BYTES],
        .temporary = values[ANSWER_TEMPORARY],
        .live_blocks = (int64_t)(values[ANSWER_ALLOCATIONS] - values[ANSWER_FREES]),
        .live_bytes = (int64_t)(values[ANSWER_ALLOCATED_BYTES] - values[ANSWER_FREED_BYTES]),
    };
    return 1;
}

static bool open_scope(uint32_t *scope)
{
    struct thread_state *t = guard_enter((uint64_t)__builtin_frame_address(0));
    if (t == NULL) {
        return false;
    }
    const bool is_open = has_sums(t) && stats_query_open_scope(&t->producer, scope);
    guard_leave(t);
    return is_open;
}

// Whether the scope is open on this thread.
static bool is_open(uint32_t scope)
{
    struct thread_state *t = guard_enter((uint64_t)__builtin_frame_address(0));
    if (t == NULL) {
        return false;
    }
    const bool found = scope < LANE_SCOPES_MAX && (t->producer.open_scopes >> scope & 1) != 0;
    guard_leave(t);
    return found;
}

static void close_scope(uint32_t scope)
{
    struct thread_state *t = guard_enter((uint64_t)__builtin_frame_address(0));
    if (t != NULL) {
        stats_query_close_scope(&t->producer, scope);
        guard_leave(t);
    }
}

static int peak_begin(struct cairn_peak *peak)
{
    uint64_t values[ANSWER_VALUES];
    uint32_t scope = 0;
    *peak = (struct cairn_peak){0};
    if (!open_scope(&scope)) {
        return 0;
    }
    if (!ask(STATS_QUERY_PEAK_BEGIN, scope, values)) {
        close_scope(scope);
        return 0;
    }
    peak->scope = scope + 1;
    return 1;
}

static int peak_end(struct cairn_peak *peak, uint64_t *bytes)
{
    uint64_t values[ANSWER_VALUES];
    const uint32_t scope = peak->scope - 1; // beyond all scopes if peak->scope is 0
    *peak = (struct cairn_peak){0};
    if (!is_open(scope)) {
        return 0;
    }
    const bool is_answered =
        ask(STATS_QUERY_PEAK, scope, values) && values[ANSWER_PEAK_BYTES] != UINT64_MAX;
    close_scope(scope);
    if (is_answered) {
        *bytes = values[ANSWER_PEAK_BYTES];
    }
    return is_answered;
}

static void mark(const char *text, uint32_t kind)
{
    struct thread_state *t = guard_enter((uint64_t)__builtin_frame_address(0));
    if (t == NULL) {
        return;
    }
    const size_t len = text != NULL ? strnlen(text, WIRE_MARK_BYTES_MAX) : 0;
    if (len > 0) {
        lane_send_mark(&t->producer, kind == CAIRN_MARK_PHASE ? WIRE_TEXT_PHASE : WIRE_TEXT_MARK,
                       (struct bytes){.data = (const uint8_t *)text, .len = len});
    }
    guard_leave(t);
}

const struct cairn_api cairn_api_v1 = {
    .version = 1,
    .bytes = sizeof(struct cairn_api),
    .report_alloc = report_alloc,
    .report_realloc = report_realloc,
    .report_free = report_free,
    .mark = mark,
    .pool_alloc = pool_alloc,
    .pool_realloc = pool_realloc,
    .event = event,
    .stats = stats,
    .peak_begin = peak_begin,
    .peak_end = peak_end,
};
