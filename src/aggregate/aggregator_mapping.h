// SPDX-License-Identifier: MIT
// aggregator_mapping: counts the mappings of the recorded processes by stack. They never count as
// heap.
//
// Each process has a map of its address space (mapping_map). Each (process, stack, kind) has a row
// of mapped and unmapped bytes. What an allocator maps has its place in the map, with the module of
// the allocator, but no row. A forked child begins with its parent's map; rows of its own inherit
// the bytes. A process that ends leaves its rows unchanged.
// Context: H, one thread; part of the aggregator.
// Failure: as in aggregator.h.
#pragma once

#include <stdint.h>

#include "aggregate/tables/mapping_map.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"
#include "session/wire.h"

struct aggregator;
struct aggregator_process;

DEFINE_VEC(rec_mapping_vec, struct rec_mapping);

// Count one change. `node` is the stack that mapped, if the change maps anything. ERR_CORRUPT: the
// range wraps around, or the kind is unknown.
enum err aggregator_mapping(struct aggregator *aggregator,
                            struct aggregator_process *process,
                            const struct wire_mapping *change,
                            uint32_t node) MUST_USE;

// Give nodes new numbers: node n becomes nodes[n].
enum err aggregator_mapping_renumber(struct aggregator *aggregator, const uint32_t *nodes) MUST_USE;

// Copy the map of `parent` to its forked `child`.
enum err aggregator_mapping_inherit(struct aggregator *aggregator,
                                    struct aggregator_process *child,
                                    const struct aggregator_process *parent) MUST_USE;
