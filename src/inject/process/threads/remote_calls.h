// SPDX-License-Identifier: MIT
// remote_calls: let the target make system calls.
//
// One thread of the target is stopped for a moment, gets a new program counter, and goes on: it
// makes the calls, stores their results, restores its registers and continues where it was. From
// the moment that it goes on it needs nothing from outside, so this process may be killed at any
// time. The thread uses neither its stack nor its vector registers nor its flags (remote_code.h).
//
//   page   0..8 KiB   r-x  code of the runs, one slot each
//          8..12 KiB  rw-  list and results of the present run
//          12..24 KiB rw-  note: for the caller to keep what the next attach has to know
//
// With pages of 16 or 64 KiB the code has one, and the rest begins behind it.
//
// The first run finds no such page. Its code is written behind the end of some module's text, where
// the last page has bytes that nothing uses, and its calls map the page. The page stays mapped,
// because a thread may still execute the last instructions of a run. A slot is used again only
// after no thread was seen in any.
//
// On AArch64 code must be within 128 MB of where its thread continues, so the page is near the
// module of the first thread, and a thread elsewhere is not used.
//
// Addresses are chosen here (MAP_FIXED_NOREPLACE), so that no call needs the result of another.
// Context: H. Failure: the target is unharmed; some calls may have been made.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/address_range.h"
#include "host/memory/page_size.h"
#include "inject/process/target_process.h"
#include "inject/process/threads/thread_stop.h"

enum {
    REMOTE_CALLS_MAX = 32, // of one run
    REMOTE_CODE_BYTES_MIN = 8 << 10,
    REMOTE_LIST_BYTES = 4 << 10,
    REMOTE_NOTE_BYTES = 12 << 10,
};

// Code has pages of its own.
static inline uint64_t remote_code_bytes(void)
{
    return page_end(REMOTE_CODE_BYTES_MIN);
}

static inline uint64_t remote_page_bytes(void)
{
    return page_end(remote_code_bytes() + REMOTE_LIST_BYTES + REMOTE_NOTE_BYTES);
}

struct remote_call {
    int64_t number; // SYS_...
    uint64_t arguments[6];
    int64_t result; // set by remote_calls_run; -errno on failure
};

struct remote_calls {
    struct target_process *target; // borrowed
    struct stop_options stop;
    uint64_t page;              // its address; 0: not mapped yet
    uint32_t next_slot;         // the first one that was not used yet
    struct stop_report longest; // of the stops so far
};

// Make the calls in this order and set their results. A failing call does not stop the others.
// With calls->stop.lift_seccomp the target's filters do not apply to the calls, and the target
// needs this process until they are made. ERR_LIMIT if no thread made them in time, ERR_UNSUPPORTED
// if no module has room for the first code, and the errors of thread_stop_run.
enum err remote_calls_run(struct remote_calls *calls,
                          struct remote_call *list,
                          size_t count,
                          struct err_info *info) MUST_USE;

// Find the largest unused end of a module's executable pages. Returns its size.
uint64_t remote_calls_find_cave(const struct target_process *target, uint64_t *out_addr);

// Wait until no thread is in a range of code, nor returns into it from a handler or a function.
enum err remote_calls_await_unused(struct remote_calls *calls,
                                   struct address_range code,
                                   struct err_info *info) MUST_USE;

// Return the address of the note, whose first use is the caller's. 0 before the first run.
static inline uint64_t remote_calls_note(const struct remote_calls *calls)
{
    return calls->page != 0 ? calls->page + remote_code_bytes() + REMOTE_LIST_BYTES : 0;
}
