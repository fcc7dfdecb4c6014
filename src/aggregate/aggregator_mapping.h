// SPDX-License-Identifier: MIT
// aggregator_mapping: what the recorded processes map themselves, by stack: not heap, and never
// added to it.
//
// Each process has a map of its address space (mapping_map); each (process, stack, kind) has a row
// that counts what was mapped and what of it is gone. A forked child begins with its parent's map,
// under rows of its own that inherited their bytes. A process that ends leaves its rows as they
// are. Context: H, one thread; part of the aggregator. Failure: as there.
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

// One change; `node` is the stack that mapped, if anything was. Ranges that wrap around, and kinds
// that there are not, are ERR_CORRUPT.
enum err aggregator_mapping(struct aggregator *aggregator,
                            struct aggregator_process *process,
                            const struct wire_mapping *change,
                            uint32_t node) MUST_USE;

// `child` began as a copy of `parent`.
enum err aggregator_mapping_inherit(struct aggregator *aggregator,
                                    struct aggregator_process *child,
                                    const struct aggregator_process *parent) MUST_USE;
