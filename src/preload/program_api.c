// SPDX-License-Identifier: MIT
// program_api: what include/cairn.h calls: blocks of the program's own allocators, and marks.
//
// The program finds the table by its name, cairn_api_v1. Custom blocks take the way of every other
// one, but with WIRE_CUSTOM_BLOCK in their addresses: a pool's block may lie at the very address of
// the block from malloc that holds it. A mark is a TEXT record on the thread's lane, so that it
// stands at its own moment among the thread's events.
//
// Compiled with frame pointers: unwind_caller_regs() reads them. Context: T, whoever calls; a mark
// from a handler that interrupted a hook of its thread is dropped. errno is kept.
#include <cairn.h>
#include <string.h>

#include "base/compiler.h"
#include "preload/guard.h"
#include "preload/record.h"
#include "session/wire.h"

EXPORT extern const struct cairn_api cairn_api_v1;

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
        record_realloc(&caller, custom(old_block), custom(block), size_bytes);
    }
}

static void report_free(const void *block)
{
    if (block != NULL) {
        record_free(custom(block));
    }
}

static void mark(const char *text, uint32_t kind)
{
    struct thread_state *t = guard_enter((uint64_t)__builtin_frame_address(0));
    if (t == NULL) {
        return;
    }
    const size_t len = text != NULL ? strnlen(text, WIRE_MARK_BYTES_MAX) : 0;
    if (len > 0 && lane_producer_tick(&t->producer)) {
        lane_producer_send_text(&t->producer,
                                kind == CAIRN_MARK_PHASE ? WIRE_TEXT_PHASE : WIRE_TEXT_MARK,
                                (struct bytes){.data = (const uint8_t *)text, .len = len}, false);
        lane_producer_publish(&t->producer);
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
};
