// SPDX-License-Identifier: MIT
// recording_rows: a recording as the rows of a store's tables.
//
//   threads: selection -> recording_rows_make -> rows -> recording_rows_put -> engine, one thread
//
// src/profile computes all figures: a stack of the store is a stack of call_sites.h, so the sums of
// a call site equal those of `cairn report`. Functions and stacks get ids from their content, which
// are equal in all recordings:
//
//   function   name without a compiler's clone, and the module's file name; unnamed code: the
//              build-id, too
//   stack      the ids of its functions, innermost first, and file and line of the call site
//   run        start, machine, process and command line: the states of one run that --rotate kept,
//              and a file that was added while it was written, have one run_id. run_order rises
//              from state to state. What has no start is a run of its own
//
// Stacks that differ only in the lines of outer frames are one stack. Names are cleaned
// (codec/clean_text.h) and cut at STORE_NAME_MAX bytes. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "profile/model/cost.h"
#include "profile/select/filter.h"
#include "store/engine.h"

enum {
    STORE_NAME_MAX = 16384, // bytes
};

// What a user says about a recording. Texts are borrowed.
struct store_labels {
    const char *service; // NULL: the file name of the program
    const char *version; // NULL: the build-id of the program
    const char *host;    // NULL: the recorded machine
    const char *labels;  // a JSON object
    bool is_oom;         // memory ran out; else SIGKILL, the kernel's signal for that, tells
};

struct recording_source {
    const struct selection *selection; // the whole recording, its suppressions applied
    const struct store_labels *labels;
    const char *path;
    int64_t id; // hash of the file's content
};

// The merged costs of a stack.
struct stack_costs {
    int64_t id;
    int64_t function;
    struct costs costs;
};

DEFINE_VEC(stack_costs_vec, struct stack_costs);

// What one recording adds to a store. Valid when zeroed.
struct recording_rows {
    int64_t id;
    struct store_table functions; // owned; their columns have no names
    struct store_table stacks;    // owned
    struct store_table recording; // owned; one row
    struct stack_costs_vec costs; // owned; by stack
    bool knows_costs[COST_COUNT]; // which costs the recording knows
};

void recording_rows_release(struct recording_rows *rows);

// Return the memory that the rows take.
size_t recording_rows_bytes(const struct recording_rows *rows);

// Make the rows of a recording, without a store: threads can do so at the same time. ERR_LIMIT if
// it has more functions, stacks or text than a store takes; ERR_NO_MEMORY.
enum err recording_rows_make(const struct recording_source *source,
                             struct recording_rows *out,
                             struct err_info *info) MUST_USE;

// The ids that were put since `begin` of an engine. Valid when zeroed.
struct rows_seen {
    struct map_u64 functions; // owned
    struct map_u64 stacks;    // owned
};

void rows_seen_release(struct rows_seen *seen);

// Put rows between begin and commit of the engine, functions and stacks once each. `has_costs`: the
// table `rows` has those of this recording. Errors: those of the engine, ERR_NO_MEMORY.
enum err recording_rows_put(const struct recording_rows *rows,
                            bool has_costs,
                            struct rows_seen *seen,
                            struct store *engine,
                            struct err_info *info) MUST_USE;
