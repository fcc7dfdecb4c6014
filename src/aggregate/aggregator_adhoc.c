// SPDX-License-Identifier: MIT
#include "aggregate/aggregator_adhoc.h"

#include "aggregate/aggregator.h"

enum err aggregator_adhoc(struct aggregator *aggregator,
                          struct aggregator_process *process,
                          uint32_t node,
                          uint64_t weight)
{
    uint32_t row;
    TRY(rec_adhoc_vec_reserve(&aggregator->adhoc, 1));
    TRY(map_u64_number(&process->adhoc_rows, node, aggregator->adhoc.len, &row));
    if (row == aggregator->adhoc.len) {
        aggregator->adhoc.items[aggregator->adhoc.len++] =
            (struct rec_adhoc){.process = process->index, .node = node};
    }
    struct rec_adhoc *adhoc = aggregator->adhoc.items + row;
    adhoc->events++;
    if (__builtin_add_overflow(adhoc->weight, weight, &adhoc->weight)) {
        adhoc->weight = UINT64_MAX;
    }
    return ERR_OK;
}

enum err aggregator_adhoc_renumber(struct aggregator *aggregator, const uint32_t *nodes)
{
    for (size_t i = 0; i < aggregator->processes.len; i++) {
        map_u64_clear(&aggregator->processes.items[i]->adhoc_rows);
    }
    for (size_t i = 0; i < aggregator->adhoc.len; i++) {
        struct rec_adhoc *adhoc = aggregator->adhoc.items + i;
        struct aggregator_process *process = aggregator->processes.items[adhoc->process];
        adhoc->node = nodes[adhoc->node];
        if (!process->is_ended) {
            TRY(map_u64_put(&process->adhoc_rows, adhoc->node, (uint32_t)i));
        }
    }
    return ERR_OK;
}
