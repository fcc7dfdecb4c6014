// SPDX-License-Identifier: MIT
// lane_dictionary: the recorder's half of a lane's dictionaries, which MODULE and STACK records
// define: module slot -> module, stack slot -> node and row.
//
// The same records in the same order change both halves, so they agree. A STACK record has the name
// of a known node, the frames that follow it, and perhaps a slot. Names are hashes of the frames so
// far; all lanes of a process share them. While the memory budget allows no more stacks, frames are
// merged (memory_budget.h).
// Trust: none. A violation of wire.h returns ERR_CORRUPT.
// Memory: 16 bytes a module slot and 8 a stack slot that the lane uses.
// Numbers of rows stay when the dictionaries begin anew: the next ROW of a slot says that its stack
// has left its row.
// Context: H, the recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/aggregator.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recorder/session/lane_consumer.h"

// Stack slots that are followed; the producer's own dictionary has to fit LANE_STATE_BYTES.
#define LANE_DICTIONARY_SLOTS_MAX (1u << 17)

struct lane_module_slot {
    uint64_t bias;
    uint32_t module; // id in the stack table
    bool is_defined;
};

DEFINE_VEC(lane_module_slot_vec, struct lane_module_slot);

struct lane_dictionary {
    struct lane_module_slot_vec modules; // by slot
    struct u32_vec nodes;                // by slot; REC_NONE: not defined
    struct u32_vec numbers;              // by slot: of its row; 0: it has none
};

void lane_dictionary_release(struct lane_dictionary *dictionary);

// Define a module slot, or begin the dictionaries anew. ERR_NO_MEMORY, ERR_LIMIT.
enum err lane_dictionary_add_module(struct lane_dictionary *dictionary,
                                    struct aggregator_process *process,
                                    struct aggregator *aggregator,
                                    const struct wire_record *record) MUST_USE;

// Add the frames of a STACK record, and define its slot. ERR_CORRUPT, ERR_NO_MEMORY, ERR_LIMIT.
enum err lane_dictionary_add_stack(struct lane_dictionary *dictionary,
                                   struct aggregator_process *process,
                                   struct aggregator *aggregator,
                                   const struct wire_record *record) MUST_USE;

// Note the number of the row of a stack slot that is defined; 0: it has none. *before: the one that
// it had. ERR_NO_MEMORY.
enum err lane_dictionary_set_number(struct lane_dictionary *dictionary,
                                    uint32_t slot,
                                    uint32_t number,
                                    uint32_t *before) MUST_USE;

// Return the node of a stack slot; REC_NONE: it was never defined.
static inline uint32_t lane_dictionary_node(const struct lane_dictionary *dictionary, uint32_t slot)
{
    return slot < dictionary->nodes.len ? dictionary->nodes.items[slot] : REC_NONE;
}
