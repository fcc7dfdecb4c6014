// SPDX-License-Identifier: MIT
// stack_probe: walks the stack at a node of a stack_tree in all ways, and compares the results.
//
// Each probe compares the incremental walk with a full one, with the name that needs no walk where
// there is one, and with the tree's shadow stack. It compares a sample also with the precise walk
// and with another unwinder (stack_oracle.h). It keeps the first difference as a text, since
// cmocka's assertions work in the main thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stack_tree.h"
#include "target/unwind/unwind.h"

struct stack_probe {
    struct unwind_thread *thread;
    struct unwind_thread *seldom; // walks only when unwind_thread_again returns 0, as a hook does
    void *sink_memory;            // for the oracles' stacks
    uint32_t max_frames;
    bool has_async_nodes; // the shadow stack may be half written: do not use it
    uint64_t root_pc;     // if not 0: the oracle is not checked against walks that do not end there
    bool oracle_is_blind; // the oracle cannot step through these stacks
    // Places where the oracle's pcs are not return addresses, or 0:
    uint64_t entry_pc;    // __start_context
    uint64_t restorer_pc; // return address of signal handlers; the next frame was interrupted
    // Counts of results:
    uint64_t walks;
    uint64_t foreign;
    uint64_t unfinished;
    uint64_t guessed;
    uint64_t nonsense; // walks that did not end at root_pc
    uint64_t cut;
    uint64_t walk_cache;
    uint64_t again; // named by unwind_thread_again
    uint64_t against_oracle;
    uint64_t oracle_gave_up; // did not reach root_pc, like libgcc from a linkage stub
    uint64_t against_precise;
    uint64_t frames;
    uint64_t frames_changed;
    // The last remembered result, to check changed_from.
    uint32_t last_count;
    struct unwind_frame *last;
    char failure[512]; // the first; empty if there is none
};

// Initialize a probe. `capacity` and `max_frames` as for unwind_thread_init().
void stack_probe_init(struct stack_probe *probe, uint32_t capacity, uint32_t max_frames);
void stack_probe_release(struct stack_probe *probe);

// Probe. This is the probe function of a tree whose context is a stack_probe.
void stack_probe_run(struct stack_tree *tree);

// Probe from a frame that is not the caller's.
void stack_probe_walk(struct stack_probe *probe,
                      const struct unwind_regs *start,
                      const struct stack_tree *tree,
                      uint64_t sample);
