// SPDX-License-Identifier: MIT
#include "profile/tables/unseen.h"

#include "base/compiler.h"

#define MAPPED_BYTES_MIN  ((uint64_t)8 << 20)
#define MAPPED_TIMES_HEAP 8u

// The snapshot with the highest RSS of the process; NULL if there is none.
static const struct rec_memory_snapshot *largest_snapshot(const struct recording *recording,
                                                          uint32_t process)
{
    const struct rec_memory_snapshot *largest = NULL;
    for (size_t i = 0; i < recording->memory_snapshot_count; i++) {
        const struct rec_memory_snapshot *snapshot = &recording->memory_snapshots[i];
        if (snapshot->process == process &&
            (largest == NULL || snapshot->rss_bytes > largest->rss_bytes)) {
            largest = snapshot;
        }
    }
    return largest;
}

// The stack of the largest resident mapping in any snapshot of the process.
static uint32_t largest_mapper(const struct recording *recording, uint32_t process)
{
    uint32_t node = REC_NONE;
    uint64_t most = 0;
    for (size_t i = 0; i < recording->part_count; i++) {
        const struct rec_part *part = &recording->parts[i];
        if (part->kind == REC_PART_MAPPED && part->node != REC_NONE && part->rss_bytes > most &&
            recording->memory_snapshots[part->snapshot].process == process) {
            most = part->rss_bytes;
            node = part->node;
        }
    }
    return node;
}

static bool is_hidden(const struct unseen *memory)
{
    return memory->mapped_bytes >= MAPPED_BYTES_MIN &&
           memory->mapped_bytes / MAPPED_TIMES_HEAP >= memory->heap_bytes &&
           memory->mapped_bytes > memory->anonymous_bytes / 2;
}

enum err unseen_collect(const struct profile *profile, struct unseen_vec *out)
{
    const struct recording *recording = &profile->recording;
    for (uint32_t i = 0; i < recording->process_count; i++) {
        const uint32_t flags = recording->processes[i].flags;
        const struct rec_memory_snapshot *snapshot = largest_snapshot(recording, i);
        struct unseen found = {.kind = UNSEEN_MAPPED, .process = i, .node = REC_NONE};
        if (snapshot != NULL) {
            found.heap_bytes =
                snapshot->live_bytes + snapshot->rounding_bytes + snapshot->kept_bytes;
            found.mapped_bytes = snapshot->mapped_bytes;
            found.anonymous_bytes = found.heap_bytes + snapshot->mapped_bytes +
                                    snapshot->stack_bytes + snapshot->rest_bytes;
        }
        if ((flags & REC_PROCESS_OWN_ALLOCATOR) != 0) {
            found.kind = UNSEEN_MALLOC;
        } else if ((flags & REC_PROCESS_GO) != 0) {
            found.kind = UNSEEN_GO;
        } else if (!is_hidden(&found)) {
            continue;
        }
        found.node = largest_mapper(recording, i);
        TRY(unseen_vec_push(out, found));
    }
    return ERR_OK;
}

const char *unseen_key(enum unseen_kind kind)
{
    static const char *const keys[] = {
        [UNSEEN_MALLOC] = "malloc", [UNSEEN_GO] = "go", [UNSEEN_MAPPED] = "mapped"};
    return keys[kind];
}

uint64_t unseen_execs(const struct recording *recording)
{
    uint64_t execs = rec_counter_value(recording, "unnamed_execs");
    for (size_t i = 0; i < recording->unrecorded_count; i++) {
        execs += recording->unrecorded[i].execs;
    }
    return execs;
}
