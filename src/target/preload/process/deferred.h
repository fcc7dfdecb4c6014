// SPDX-License-Identifier: MIT
// deferred: events of signal handlers that interrupted a hook.
//
// A signal handler may allocate while its thread is inside one of our hooks. It must not touch the
// lane, which the interrupted hook is changing, and its event must not be lost. So the handler
// writes its event, with the whole stack, into a buffer of the lane, and the interrupted hook sends
// it when it leaves the guard. This keeps the thread's order: the handler's event happened before
// the hook's end, and a hook that has recorded its event only has to leave.
//
//   memory: | event, frames | event, frames | ... used
//
// Handlers may interrupt handlers here too. A handler takes space by writing its length where the
// free room begins; exactly one of them does so first. A handler that finds a length there moves
// `used` past it. An event becomes ready when it is complete. A handler is done when the code that
// it interrupted continues. So the owner finds every event ready, except those of handlers that
// left by longjmp; it skips and counts these.
//
// The walk needs memory that the interrupted walk does not use: a few walkers for the whole
// process, taken by setting a bit of process_page.walkers, mapped when first needed and kept. Each
// thread notes the walkers that it has, so that a handler that left by longjmp does not keep one.
//
// Context: T; deferred_put in signal handlers, the rest by the lane's thread under the guard.
// Failure: LOST_reentrant counts events for which there was no room, and events that were half
// written or half sent.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "target/producer/freed_note.h"
#include "target/unwind/unwind.h"

#define DEFERRED_BYTES  (32u << 10)
#define DEFERRED_CLOSED UINT32_MAX

enum event_kind {
    EVENT_ALLOC = 1,
    EVENT_REALLOC = 2,
    EVENT_FREE = 3,
    EVENT_MAPPING = 4, // only as the first member of a mapping_event
};

struct event {
    enum event_kind kind;
    uint64_t address;
    uint64_t old_address;    // EVENT_REALLOC
    uint64_t size_bytes;     // except EVENT_FREE
    bool is_later;           // a word of BOOK_ROW_LATER is in its place (book.h)
    struct freed_note freed; // of the block that is freed, if its word was taken before
    uint32_t level;          // of a chosen block (sampling_level.h)
};

// A change of the program's own mappings; see WIRE_MAPPING.
struct mapping_change {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t number;
    uint64_t old_address;
    uint64_t old_size_bytes;
    uint64_t old_number;
    uint32_t kind; // enum wire_mapping_kind
};

struct mapping_event {
    struct event event;
    struct mapping_change change;
};

enum deferred_state {
    DEFERRED_TAKEN = 0, // being written
    DEFERRED_READY = 1,
    DEFERRED_SENDING = 2,
    DEFERRED_SENT = 3,
};

struct deferred_event {
    _Atomic uint32_t state; // enum deferred_state
    _Atomic uint32_t bytes; // with its frames; 0 where the free room begins
    uint32_t count;         // of frames
    uint32_t flags;         // enum unwind_flags
    uint64_t name;
    struct event event;
    struct mapping_change mapping; // EVENT_MAPPING
    struct unwind_frame frames[];  // outermost first
};

struct deferred {
    uint8_t *memory;          // DEFERRED_BYTES, zero where free; borrowed from the lane
    _Atomic uint64_t room;    // low half: `used`, or DEFERRED_CLOSED if an event did not fit; high
                              // half: how much of that has been sent. 0: nothing to do
    _Atomic uint32_t walkers; // bit i: walker i is in use by a handler on this thread
};

// Keep `event`, whose stack begins with `caller` (not used for EVENT_FREE).
void deferred_put(struct deferred *d,
                  const struct event *event,
                  const struct unwind_regs *caller,
                  uint32_t max_frames);

// Give back the walkers of handlers that have ended. Call this from code that handlers interrupt,
// not from a handler: all handlers that began before it have then ended.
void deferred_forget_walkers(struct deferred *d);

// Call `send` for each event, in order, and empty the buffer.
void deferred_drain(struct deferred *d,
                    void (*send)(void *context, const struct deferred_event *event),
                    void *context);
