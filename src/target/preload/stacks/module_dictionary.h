// SPDX-License-Identifier: MIT
// module_dictionary: the modules that the recorder knows on one lane, and pcs as offsets in them.
//
// Entries are sorted by address; a pc finds its entry by the last hit or by bisection. For a pc
// without an entry the unwinder finds the module, which is then sent as MODULE before the stack
// that needs it. When the slots run out, or code was unloaded, the dictionary is emptied. The next
// MODULE then carries WIRE_MODULE_RESET, which voids all definitions of the lane; the caller
// empties its stack dictionary in the same moment (see stack_dictionary.h).
//
// Invariants: entries are disjoint; slot of entry i is in 1..count. Context: T, the lane's own
// thread under the guard. Memory: the lane's.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"
#include "target/producer/lane_producer.h"

#define MODULE_DICTIONARY_MIN 24u // without memory of its own
#define MODULE_DICTIONARY_MAX 1024u

struct module_entry {
    uint64_t start;
    uint64_t end;
    uint64_t bias;
    uint64_t slot;
};

struct module_dictionary {
    struct module_entry *entries; // room for MODULE_DICTIONARY_MIN, or `grown`
    struct module_entry *grown;   // room for MODULE_DICTIONARY_MAX; both borrowed from the lane
    uint32_t count;
    uint32_t last;      // index of the last hit
    bool reset_pending; // the next MODULE voids all earlier ones
};

// Empty the dictionary. The recorder's copy becomes void with the next MODULE.
void module_dictionary_reset(struct module_dictionary *d);

// Ensure that the recorder knows the module of `pc`. `is_guess`: the stack has
// UNWIND_USED_FRAME_POINTER. ERR_LIMIT: the slots have run out; reset and begin again. ERR_DEAD:
// recording has ended.
MUST_USE enum err module_dictionary_introduce(struct module_dictionary *d,
                                              struct lane_producer *p,
                                              uint64_t pc,
                                              bool is_guess);

// Return `pc` as a frame of wire.h: slot and offset. Its module must have been introduced.
uint64_t module_dictionary_frame(struct module_dictionary *d, uint64_t pc);
