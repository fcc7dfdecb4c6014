// SPDX-License-Identifier: MIT
// aggregator_adhoc: counts events that the program reports itself (cairn_event), by stack.
//
// Each (process, stack) has a row that counts its events and sums their weights. The leaf of the
// stack is the event's name. Events never count as heap.
// Context: H, one thread; part of the aggregator.
// Failure: as in aggregator.h.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

struct aggregator;
struct aggregator_process;

DEFINE_VEC(rec_adhoc_vec, struct rec_adhoc);

// Give nodes new numbers: node n becomes nodes[n].
enum err aggregator_adhoc_renumber(struct aggregator *aggregator, const uint32_t *nodes) MUST_USE;

// Count an event of that weight; `node` is its stack. The sum of weights saturates.
enum err aggregator_adhoc(struct aggregator *aggregator,
                          struct aggregator_process *process,
                          uint32_t node,
                          uint64_t weight) MUST_USE;
