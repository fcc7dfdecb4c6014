// SPDX-License-Identifier: MIT
// aggregator_process: one image of one recorded process, from the time it joins until it is gone.
//
// Its blocks, its stacks' names and its waiting frees are its own, for addresses mean nothing
// elsewhere; they are given back when it ends. What the recording says of it stays.
// Context: H, one thread; owned by the aggregator.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregate/live_blocks/live_map.h"
#include "aggregate/peak/peak_estimate.h"
#include "aggregate/pending_frees.h"
#include "aggregate/tables/mapping_map.h"
#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/text/strbuf.h"
#include "recording/format/tables.h"

struct aggregator_process {
    struct rec_process record; // as it will be in the recording
    uint64_t join_number;      // of the session: orders the images that have joined
    uint64_t start_stamp;      // its blocks were allocated after it; 0: not known
    uint32_t index;            // in the recording
    bool is_ended;
    uint64_t end_peak_number; // number of the global peak when it ended
    uint64_t live_bytes;
    uint32_t thread_count; // threads that ever were
    struct live_map live;  // of the living
    uint64_t stand_ins;    // blocks that those stand for beside themselves
    struct left_out_sums left_out;
    struct map_u64 nodes_by_name; // stack names of this address space -> nodes
    struct pending_frees waiting;
    struct mapping_map mapped;           // what it has mapped itself
    struct map_u64 mapping_rows;         // node and kind -> row of aggregator.mappings
    uint64_t mapped_bytes;               // sum over `mapped`
    struct map_u64 adhoc_rows;           // node -> row of aggregator.adhoc
    struct rec_rss_sample latest_sample; // of proc_sampler
    uint32_t jit_module; // of its code that belongs to no file; 0: there is none yet
};
_Static_assert(sizeof(struct aggregator_process) <= 1024,
               "one for each process that there ever was");

// Appends `arguments`, each ended by a zero byte, as one line that a shell reads back the same.
void command_line_quote(struct strbuf *line, struct bytes arguments);
