// SPDX-License-Identifier: MIT
// peak_bound: how far the true peak can be from the one that we saw.
//
// Within a tick the order between lanes is unknown; the order within a lane is known. So at any
// moment of a tick the true live bytes are
//
//     live at its start + for each lane some prefix of what that lane did in the tick
//
// which is at most the start plus every lane's highest prefix. The true peak lies between
//
//     lower = the highest sum at the end of a tick      (where the order does not matter)
//     upper = the highest of those bounds
//
// and so does ours. A tick in which only one lane did anything is exact: it counts as it is, for
// both. A block whose free was read before it (waiting_frees) counts in its allocating lane's
// prefix and in no other, which keeps `upper` an upper bound.
//
// A tick here is what lies between two moments up to which everything has been booked and nothing
// beyond: a millisecond, or several where lanes had to be read early (book_note_complete).
//
// A process that ends takes its heap out of the sum in the tick of its last sign of life, after all
// that it did and in an unknown order to what others did. From the next tick on, until it was found
// gone, its heap may or may not have been there: it is a ghost, which counts for `upper` alone.
//
// Threads hold back blocks (nursery.h). While a recording has one thread at a time, no maximum
// falls into such a time, and nothing changes. From then on a lane's highest prefix is at most
//
//     what it had done when its thread's own tick began, when nothing was held, and by how much its
//     thread says that its sum has risen since (peak_bound_rise)
//     what we saw of it at most, and all that it ever held in the tick
//
// whichever is less. (Its own tick and ours need not begin together.) Of lanes that hold something
// at the moment, so that we have not heard of it, the same is known (peak_bound_add_open). What we
// see is never more than the truth then, so `lower` stays one. Context: H, one thread; no
// allocation.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    PEAK_GHOSTS_MAX = 8, // beyond which the latest two become one
    PEAK_OPENS_MAX = 64, // beyond which all that a lane holds counts
};

// Whose lanes acted, or who ended, in a tick: a number of a process, or one of these.
#define PEAK_NOBODY  UINT32_MAX
#define PEAK_SEVERAL (UINT32_MAX - 1)

// The heap of a process that may be gone already.
struct peak_ghost {
    uint64_t bytes;
    uint64_t until_ms; // from then on it is
};

// One lane's part of the tick under way.
struct lane_swing {
    uint64_t serial; // tick that the rest is about, of peak_bound.serial
    uint32_t owner;  // number of the lane's process
    int64_t net_bytes;
    int64_t highest_bytes; // highest net_bytes, at least 0
    int64_t limit_bytes;   // what it may have been, if more
    int64_t base_bytes;    // net_bytes when its thread's own tick began, be it before this one
    uint64_t own_serial;   // tick in which that began
};

// A lane whose thread holds something.
struct peak_open {
    const struct lane_swing *swing; // borrowed, until it is forgotten
    uint64_t rise_bytes;
    uint64_t held_bytes;
};

struct peak_bound {
    uint64_t serial;       // of the tick under way
    uint64_t start_bytes;  // live when it began
    uint64_t rise_bytes;   // sum of all lanes' highest prefixes in it
    uint64_t unseen_bytes; // by how much their true ones may be higher
    uint32_t lane_count;   // lanes that did something in it
    uint32_t actors;       // whose they are
    uint32_t dead;         // who ended in it
    uint64_t dead_bytes;   // what they held
    struct peak_open opens[PEAK_OPENS_MAX];
    uint32_t open_count;
    uint64_t open_rest_bytes; // what lanes hold for which there was no room
    bool is_shared;           // the recording has had more than one lane at a time
    struct peak_ghost ghosts[PEAK_GHOSTS_MAX];
    uint32_t ghost_count;
    uint32_t new_ghosts; // the last of them, who ended in this tick
    uint64_t upper_bytes;
    uint64_t lower_bytes;
};

static inline uint32_t peak_bound_and(uint32_t some, uint32_t other)
{
    return some == PEAK_NOBODY || some == other ? other : PEAK_SEVERAL;
}

// `swing` as it is in the tick under way, of which it may not know yet.
static inline struct lane_swing peak_bound_swing(const struct peak_bound *bound,
                                                 const struct lane_swing *swing)
{
    if (swing->serial == bound->serial) {
        return *swing;
    }
    return (struct lane_swing){.serial = bound->serial,
                               .owner = swing->owner,
                               .base_bytes = swing->base_bytes - swing->net_bytes,
                               .own_serial = swing->own_serial};
}

// A lane changes the live bytes by `change`. Inline: it is on the path of each event.
static inline void
peak_bound_change(struct peak_bound *bound, struct lane_swing *swing, int64_t change)
{
    if (__builtin_expect(swing->serial != bound->serial, 0)) {
        *swing = peak_bound_swing(bound, swing);
        bound->lane_count++;
        bound->actors = peak_bound_and(bound->actors, swing->owner);
    }
    // Unsigned: sizes that a hostile program makes up may overflow, and then mean nothing.
    swing->net_bytes = (int64_t)((uint64_t)swing->net_bytes + (uint64_t)change);
    if (swing->net_bytes > swing->highest_bytes) {
        bound->rise_bytes += (uint64_t)swing->net_bytes - (uint64_t)swing->highest_bytes;
        if (__builtin_expect(swing->limit_bytes > swing->highest_bytes, 0)) {
            const int64_t seen =
                swing->net_bytes < swing->limit_bytes ? swing->net_bytes : swing->limit_bytes;
            bound->unseen_bytes -= (uint64_t)seen - (uint64_t)swing->highest_bytes;
        }
        swing->highest_bytes = swing->net_bytes;
    }
}

// A tick of the lane's own thread begins: nothing is held.
static inline void peak_bound_begin_own_tick(const struct peak_bound *bound,
                                             struct lane_swing *swing)
{
    swing->base_bytes = swing->net_bytes;
    swing->own_serial = bound->serial;
}

// At some moment of its own tick the lane had so many bytes besides. If that tick began before ours
// it is not known what others had then: it is no height that was certainly reached, and how high it
// may have been its thread says (peak_bound_rise).
static inline void
peak_bound_summit(struct peak_bound *bound, struct lane_swing *swing, uint64_t bytes)
{
    if (!bound->is_shared || swing->own_serial == bound->serial) {
        peak_bound_change(bound, swing, (int64_t)bytes);
        peak_bound_change(bound, swing, -(int64_t)bytes);
    }
}

// The lane's thread says that in its own tick its sum was never higher than rise_bytes above what
// it was at its beginning, and that it held at most held_bytes that we had not heard of.
void peak_bound_rise(struct peak_bound *bound,
                     struct lane_swing *swing,
                     uint64_t rise_bytes,
                     uint64_t held_bytes);

// No lane holds anything.
void peak_bound_clear_open(struct peak_bound *bound);

// A lane holds something; what peak_bound_rise is told at the end of its thread's tick is this so
// far. `swing` must outlive it, or be forgotten.
void peak_bound_add_open(struct peak_bound *bound,
                         const struct lane_swing *swing,
                         uint64_t rise_bytes,
                         uint64_t held_bytes);
void peak_bound_forget(struct peak_bound *bound, const struct lane_swing *swing);

void peak_bound_init(struct peak_bound *bound);

// The tick under way is over, with `live_bytes` live; another one begins.
void peak_bound_end_tick(struct peak_bound *bound, uint64_t live_bytes);

// The next tick is `tick_ms`: who was to be gone before is gone. After peak_bound_end_tick.
void peak_bound_begin_tick(struct peak_bound *bound, uint64_t tick_ms);

// The process of that number, which held `bytes`, leaves the sum in the tick under way. It may have
// lived until `until_ms`; 0: not beyond this tick.
void peak_bound_leave(struct peak_bound *bound, uint32_t owner, uint64_t bytes, uint64_t until_ms);

// With the tick under way taken as ended: |true peak - peak_bytes| is at most this.
uint64_t peak_bound_error(const struct peak_bound *bound, uint64_t peak_bytes, uint64_t live_bytes);
