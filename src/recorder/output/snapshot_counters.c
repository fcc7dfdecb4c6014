// SPDX-License-Identifier: MIT
#include "recorder/output/snapshot_counters.h"

#include "base/compiler.h"

// The recorder's own counters, besides those of the session.
#define RECORDER_NOTE_COUNTERS(X)                                                           \
    X(unknown_frees, "frees of blocks that were never seen (inherited over fork, foreign)") \
    X(unrecorded_frees, "frees of blocks allocated while recording was stopped")            \
    X(merged_stacks, "times a call stack was merged with others because of --max-memory")   \
    X(unkept_blocks, "allocations that were not recorded because of --max-memory")          \
    X(merged_threads, "threads that share an entry with others of their name")              \
    X(refused_marks, "marks of the program beyond the maximum")                             \
    X(coarse_cells, "time slices per step in the history of stacks, instead of 1")          \
    X(coarse_cohorts, "time slices per step in the ages of blocks, instead of 1")           \
    X(unplaced_mappings, "changes of mappings beyond the number that cairn tracks at once")

enum err snapshot_counters_add(struct rec_counter_vec *out,
                               struct aggregator *aggregator,
                               const char *name,
                               const char *text,
                               enum rec_counter_kind kind,
                               uint64_t value)
{
    struct rec_counter counter = {.kind = kind, .value = value};
    TRY(string_table_intern_text(&aggregator->strings, name, &counter.name));
    TRY(string_table_intern_text(&aggregator->strings, text, &counter.text));
    return rec_counter_vec_push(out, counter);
}

static uint64_t count_merged_threads(const struct aggregator *aggregator)
{
    uint64_t merged = 0;
    for (size_t i = 0; i < aggregator->threads.threads.len; i++) {
        merged += aggregator->threads.threads.items[i].merged_count - 1;
    }
    return merged;
}

static uint64_t count_unplaced_mappings(const struct aggregator *aggregator)
{
    uint64_t unplaced = 0;
    for (size_t i = 0; i < aggregator->processes.len; i++) {
        unplaced += aggregator->processes.items[i]->mapped.unplaced;
    }
    return unplaced;
}

// Return how many slices one step covers; 0 if just one.
static uint64_t step_of(uint32_t shift)
{
    return shift == 0 ? 0 : (uint64_t)1 << shift;
}

enum err snapshot_counters_add_rare(struct rec_counter_vec *out,
                                    struct aggregator *aggregator,
                                    const struct rare_counter *rare,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rare[i].value != 0) {
            TRY(snapshot_counters_add(out, aggregator, rare[i].name, rare[i].text, rare[i].kind,
                                      rare[i].value));
        }
    }
    return ERR_OK;
}

enum err snapshot_counters_fill(struct rec_counter_vec *out,
                                struct aggregator *aggregator,
                                const struct aggregator_snapshot_facts *facts)
{
#define X(name, text)                                                         \
    TRY(snapshot_counters_add(out, aggregator, #name, text, REC_COUNTER_LOSS, \
                              facts->counters[LOST_##name]));
    SESSION_LOSS_COUNTERS(X)
#undef X
#define X(name, text)                                                         \
    TRY(snapshot_counters_add(out, aggregator, #name, text, REC_COUNTER_NOTE, \
                              facts->counters[NOTE_##name]));
    SESSION_NOTE_COUNTERS(X)
#undef X
    const uint64_t unknown_frees = aggregator->unknown_frees;
    const uint64_t unrecorded_frees = aggregator->unrecorded_frees;
    const uint64_t merged_stacks = aggregator->budget.merged_stacks;
    const uint64_t unkept_blocks =
        aggregator->budget.samples_alone ? aggregator->sampling.unsampled_allocations : 0;
    const uint64_t merged_threads = count_merged_threads(aggregator);
    const uint64_t refused_marks = aggregator->marks.refused;
    const uint64_t coarse_cells = step_of(aggregator->totals.rows.cell_shift);
    const uint64_t coarse_cohorts = step_of(aggregator->totals.rows.cohort_shift);
    const uint64_t unplaced_mappings = count_unplaced_mappings(aggregator);
#define X(name, text) \
    TRY(snapshot_counters_add(out, aggregator, #name, text, REC_COUNTER_NOTE, name));
    RECORDER_NOTE_COUNTERS(X)
#undef X
    const struct rare_counter rare[] = {
        {"lost_profiles", "profiles that the collector of --push did not get", REC_COUNTER_NOTE,
         facts->lost_profiles},
        {"reduced_profiles",
         "profiles of --push in which the rarest call stacks are added up as [other], for the "
         "collector's limits",
         REC_COUNTER_NOTE, facts->reduced_profiles},
        {"over_memory_limit",
         "bytes beyond --max-memory that so many threads needed to be recorded at all",
         REC_COUNTER_NOTE, aggregator->budget.over_bytes},
        {"unjoined_processes",
         "processes that had not joined 2 s after all others had ended, with an unknown number of "
         "events",
         REC_COUNTER_LOSS, facts->unjoined_count},
        {"hidden_allocators", facts->hidden, REC_COUNTER_NOTE, facts->hidden_count},
        {"unread_parts", facts->unread, REC_COUNTER_NOTE, facts->unread_count},
        {"slow_processes",
         "processes that did not let cairn read them in time: since then their resident memory is "
         "not recorded",
         REC_COUNTER_NOTE, facts->slow_count},
        {"omitted_processes", facts->omitted, REC_COUNTER_NOTE, facts->omitted_count},
        {"unpatched_functions", facts->unpatched, REC_COUNTER_LOSS, facts->unpatched_count},
    };
    return snapshot_counters_add_rare(out, aggregator, rare, ARRAY_LEN(rare));
}
