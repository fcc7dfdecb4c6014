// SPDX-License-Identifier: MIT
#include "profile/tables/unseen.h"

#include "base/compiler.h"
#include "symbols/runtimes/runtime_table.h"

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

static struct unseen memory_of(const struct recording *recording, uint32_t process)
{
    const struct rec_memory_snapshot *snapshot = largest_snapshot(recording, process);
    struct unseen found = {.kind = UNSEEN_MAPPED, .process = process, .node = REC_NONE};
    if (snapshot != NULL) {
        found.heap_bytes = snapshot->live_bytes + snapshot->rounding_bytes + snapshot->kept_bytes;
        found.mapped_bytes = snapshot->mapped_bytes;
        found.anonymous_bytes = found.heap_bytes + snapshot->mapped_bytes + snapshot->stack_bytes +
                                snapshot->rest_bytes;
        found.is_mapped = is_hidden(&found);
    }
    return found;
}

// Return the key of the process's runtime, if cairn does not see each of its objects; else "".
static const char *closed_runtime(const struct profile *profile, const struct rec_process *process)
{
    if ((process->flags & REC_PROCESS_OBJECTS) != 0) {
        return "";
    }
    const bool is_only_marked = process->runtime == 0 && (process->flags & REC_PROCESS_GO) != 0;
    return is_only_marked ? "go" : profile_string(profile, process->runtime);
}

enum err unseen_collect(const struct profile *profile, struct unseen_vec *out)
{
    const struct recording *recording = &profile->recording;
    for (uint32_t i = 0; i < recording->process_count; i++) {
        const struct rec_process *process = recording->processes + i;
        struct unseen found = memory_of(recording, i);
        found.runtime = closed_runtime(profile, process);
        if ((process->flags & REC_PROCESS_OWN_ALLOCATOR) != 0) {
            found.kind = UNSEEN_MALLOC;
        } else if (found.runtime[0] != '\0') {
            found.kind = UNSEEN_RUNTIME;
        } else if (!found.is_mapped) {
            continue;
        }
        found.node = largest_mapper(recording, i);
        TRY(unseen_vec_push(out, found));
    }
    return ERR_OK;
}

const char *unseen_key(const struct unseen *unseen)
{
    switch (unseen->kind) {
    case UNSEEN_MALLOC:
        return "malloc";
    case UNSEEN_RUNTIME:
        return unseen->runtime;
    case UNSEEN_MAPPED:
        break;
    }
    return "mapped";
}

void unseen_explain(const struct unseen *unseen, struct strbuf *out)
{
    const struct runtime *runtime = NULL;
    switch (unseen->kind) {
    case UNSEEN_MALLOC:
        strbuf_append_text(out, "has its own malloc built in: its heap was not seen; 'cairn record "
                                "--all-allocators' records it");
        break;
    case UNSEEN_RUNTIME:
        runtime = runtime_table_named(unseen->runtime);
        if (runtime != NULL) {
            runtime_explain(runtime, out);
        } else { // of a later version of cairn
            strbuf_printf(out, "has a runtime with an allocator of its own (%s)", unseen->runtime);
        }
        break;
    case UNSEEN_MAPPED:
        strbuf_append_text(out, "mapped most of its anonymous memory itself");
        break;
    }
}

uint64_t unseen_execs(const struct recording *recording)
{
    uint64_t execs = rec_counter_value(recording, "unnamed_execs");
    for (size_t i = 0; i < recording->unrecorded_count; i++) {
        execs += recording->unrecorded[i].execs;
    }
    return execs;
}
