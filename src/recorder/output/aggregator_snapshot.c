// SPDX-License-Identifier: MIT
#include "recorder/output/aggregator_snapshot.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aggregate/books/aggregator_book.h"
#include "aggregate/books/book_blocks.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/memory_limit.h"
#include "host/os/file.h"
#include "host/text/strbuf.h"
#include "recorder/output/snapshot_counters.h"

static enum err intern(struct aggregator *aggregator, const char *text, rec_string *out)
{
    return string_table_intern_text(&aggregator->strings, text, out);
}

static enum err
intern_command_line(struct aggregator *aggregator, char *const *argv, rec_string *out)
{
    CLEANUP(strbuf_release) struct strbuf arguments = {0};
    for (; argv != NULL && *argv != NULL; argv++) {
        strbuf_append(&arguments, *argv, strlen(*argv) + 1);
    }
    TRY(strbuf_result(&arguments));
    return command_line_intern(&aggregator->strings, strbuf_bytes(&arguments), out);
}

// Return the end of the run. Events may be later than the recorder's clock was (session_clock.c).
static uint64_t runtime_ms_of(const struct aggregator *aggregator,
                              const struct aggregator_snapshot_facts *facts)
{
    return max_u64(facts->runtime_ms, aggregator->totals.now_ms);
}

// Whether a process of the run was killed. Others of its group may have been, too.
static bool was_killed(const struct aggregator *aggregator,
                       const struct aggregator_snapshot_facts *facts)
{
    bool is_killed = facts->exit_status >= 0 && WIFSIGNALED(facts->exit_status) &&
                     WTERMSIG(facts->exit_status) == SIGKILL;
    for (size_t i = 0; i < aggregator->processes.len; i++) {
        is_killed |= (aggregator->processes.items[i]->record.flags & REC_PROCESS_KILLED) != 0;
    }
    return is_killed;
}

static enum err fill_meta(struct aggregator *aggregator,
                          const struct aggregator_snapshot_facts *facts,
                          struct rec_meta *out)
{
    struct utsname system = {0};
    (void)uname(&system); // cannot fail with a valid buffer
    char kernel[3 * sizeof(system.release)];
    (void)snprintf(kernel, sizeof(kernel), "%s %s %s", system.sysname, system.release,
                   system.machine);
    *out = (struct rec_meta){
        .state = facts->state,
        .page_bytes = (uint32_t)sysconf(_SC_PAGESIZE),
        .cpu_count = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
        .pid = facts->pid,
        .exit_status = facts->exit_status,
        .max_frames = facts->max_frames,
        .start_unix_ns = facts->start_unix_ns,
        .runtime_ms = runtime_ms_of(aggregator, facts),
        .memory_bytes = memory_of_machine(),
        .checkpoint_count = facts->checkpoint_count,
        .checkpoint_interval_ms = facts->checkpoint_interval_ms,
        .libc = aggregator->libc,
        .oom_limit_bytes = was_killed(aggregator, facts) ? facts->oom_limit_bytes : 0,
    };
    TRY(intern(aggregator, facts->tool_version, &out->tool_version));
    TRY(intern(aggregator, system.nodename, &out->host));
    TRY(intern(aggregator, kernel, &out->kernel));
    TRY(intern(aggregator, facts->program, &out->program));
    TRY(intern(aggregator, "cairn", &out->source_format));
    return intern_command_line(aggregator, facts->argv, &out->command_line);
}

// Whether threads have chosen blocks.
static bool has_chosen(const struct aggregator *aggregator)
{
    const struct aggregator_sampling *sampling = &aggregator->sampling;
    return aggregator->sample_bytes != 0 || sampling->unsampled_allocations != 0 ||
           sampling->max_weight > 1;
}

// Return the longest interval with which blocks were chosen.
static uint64_t interval_of(const struct aggregator *aggregator)
{
    const struct aggregator_sampling *sampling = &aggregator->sampling;
    return has_chosen(aggregator) ? max_u64(aggregator->sample_bytes, sampling->lane_interval_bytes)
                                  : 0;
}

static uint64_t standard_error_of(const struct aggregator *aggregator)
{
    const double most = 0x1p60; // a hostile program may invent any sizes
    const double chosen = ceil(sqrt(aggregator_book_variance(aggregator)));
    return (uint64_t)fmin(chosen, most);
}

// Return the bytes that chosen blocks stand for too few or too many of all that were left out. If
// few blocks were chosen, or none, their variance says nothing. But of three intervals of bytes a
// block is chosen 95 of 100 times.
static uint64_t unchosen_of(const struct aggregator *aggregator)
{
    enum {
        INTERVALS = 3
    };
    const struct aggregator_sampling *sampling = &aggregator->sampling;
    return min_u64(distance_u64(sampling->unsampled_bytes, sampling->represented_bytes),
                   INTERVALS * interval_of(aggregator));
}

// How far the peak of chosen blocks may be off, either way. The maximum of an estimate is taken at
// a moment at which it errs upwards, which two standard errors would not cover.
static uint64_t chance_of(const struct aggregator *aggregator)
{
    enum {
        SIGMAS = 3
    };
    return max_u64(SIGMAS * standard_error_of(aggregator), unchosen_of(aggregator));
}

// How far the peak of the shared sum may be off, either way. The stated one is what the rows held.
static uint64_t either_way_of(const struct aggregator *aggregator)
{
    const uint64_t by_rows = aggregator->has_book_peak ? distance_u64(aggregator->totals.peak_bytes,
                                                                      aggregator->book_peak_bytes)
                                                       : 0;
    return aggregator->book_error_bytes + by_rows + chance_of(aggregator);
}

static uint64_t peak_at_least_of(const struct aggregator *aggregator)
{
    return excess_u64(aggregator->totals.peak_bytes,
                      either_way_of(aggregator) + aggregator->book_ghost_bytes);
}

// Return how far the true peak may be from the stated one, either way.
static uint64_t peak_error_of(const struct aggregator *aggregator)
{
    return max_u64(either_way_of(aggregator),
                   aggregator->totals.peak_bytes - peak_at_least_of(aggregator));
}

static void
fill_totals(const struct aggregator *aggregator, uint64_t events, struct rec_totals *out)
{
    const struct aggregator_sampling *sampling = &aggregator->sampling;
    const bool is_estimate = has_chosen(aggregator);
    const uint64_t interval_bytes = interval_of(aggregator);
    const uint64_t peak_bytes = aggregator->totals.peak_bytes;
    *out = (struct rec_totals){
        .allocations = aggregator->totals.sums.allocations,
        .allocated_bytes = aggregator->totals.sums.allocated_bytes,
        .frees = aggregator->totals.sums.frees,
        .freed_bytes = aggregator->totals.sums.freed_bytes,
        .temporary = aggregator->totals.sums.temporary,
        .temporary_bytes = aggregator->totals.temporary_bytes,
        .peak_bytes = peak_bytes,
        .peak_error_bytes = peak_error_of(aggregator),
        .peak_at_least_bytes = peak_at_least_of(aggregator),
        .peak_standard_error_bytes = standard_error_of(aggregator),
        .peak_time_ms = aggregator->totals.peak_time_ms,
        .peak_blocks = aggregator->totals.peak_blocks,
        .unknown_frees = aggregator->unknown_frees,
        .events = events,
        // One of this and the interval marks an estimate, also where a program has overwritten what
        // its lanes count.
        .unsampled_allocations =
            max_u64(sampling->unsampled_allocations, is_estimate && interval_bytes == 0),
        .unsampled_bytes = sampling->unsampled_bytes,
        .unsampled_frees = sampling->unsampled_frees,
        .sampled_allocations = sampling->sampled_allocations,
        .represented_allocations = sampling->represented_allocations,
        .represented_bytes = sampling->represented_bytes,
        .max_weight = sampling->max_weight,
        .sample_bytes = aggregator->sample_bytes,
        .interval_bytes = interval_bytes,
    };
}

static enum err fill_processes(struct aggregator_snapshot *s,
                               const struct aggregator *aggregator,
                               const struct proc_sampler *sampler,
                               const struct aggregator_snapshot_facts *facts)
{
    size_t last_main = SIZE_MAX; // the last image of the recorded program
    for (size_t i = 0; i < aggregator->processes.len; i++) {
        struct aggregator_process *process = aggregator->processes.items[i];
        aggregator_process_inherit(aggregator, process); // what its parent reported later
        struct rec_process record = process->record;
        if (!process->is_ended) {
            record.end_ms = runtime_ms_of(aggregator, facts);
            record.end_error_ms = 1;
            record.flags |= facts->state != REC_STATE_FINISHED ? REC_PROCESS_RUNNING : 0;
        }
        last_main = (record.flags & REC_PROCESS_MAIN) != 0 ? i : last_main;
        TRY(rec_process_vec_push(&s->processes, record));
    }
    if (last_main < s->processes.len) { // whatever it executed then
        s->processes.items[last_main].exit_status = facts->exit_status;
    }
    for (size_t i = 0; sampler != NULL && i < sampler->samples.len; i++) {
        const struct rec_rss_sample *sample = sampler->samples.items + i;
        struct rec_process *record = s->processes.items + sample->process;
        if (sample->process < s->processes.len && sample->rss_bytes > record->peak_rss_bytes) {
            record->peak_rss_bytes = sample->rss_bytes;
        }
    }
    return ERR_OK;
}

// A thread without a name of its own has its program's name, as in the kernel. It ended with its
// process at the latest: a thread is dated when it is found ended, and a process at its last sign
// of life, or at its exec.
static enum err complete_threads(struct aggregator *aggregator)
{
    enum {
        NAME_BYTES = 15 // of the kernel's names
    };
    for (size_t i = 0; i < aggregator->threads.threads.len; i++) {
        struct rec_thread *thread = aggregator->threads.threads.items + i;
        const struct aggregator_process *process = aggregator->processes.items[thread->process];
        if (process->is_ended) {
            thread->end_ms = min_u64(thread->end_ms, process->record.end_ms);
        }
        if (thread->name != 0) {
            continue;
        }
        const char *path = string_table_get(&aggregator->strings, process->record.executable);
        const char *name = path_file_name(path);
        char short_name[NAME_BYTES + 1] = {0};
        memcpy(short_name, name, strnlen(name, NAME_BYTES));
        TRY(intern(aggregator, short_name, &thread->name));
    }
    return ERR_OK;
}

static enum err fill_blocks(struct aggregator_snapshot *s,
                            struct aggregator *aggregator,
                            const struct aggregator_snapshot_facts *facts)
{
    if (facts->blocks == NULL) {
        return ERR_OK;
    }
    TRY(block_list_collect(facts->blocks, aggregator->totals.rows.peak_number, &s->blocks));
    const uint64_t uncounted = (aggregator->blocks != NULL ? aggregator->blocks->unnamed : 0) +
                               block_list_clip(&aggregator->totals.rows, &s->blocks);
    s->recording.blocks = s->blocks.items;
    s->recording.block_count = s->blocks.len;
    TRY(snapshot_counters_add(&s->counters, aggregator, "blocks_left_out",
                              "blocks that --blocks had no room to list", REC_COUNTER_NOTE,
                              block_list_omitted(facts->blocks)));
    const struct rare_counter notes[] = {
        {"uncounted_blocks",
         "blocks that --blocks does not list, because their threads had not counted them when they "
         "were killed",
         REC_COUNTER_NOTE, uncounted},
        {"undecided_blocks",
         "blocks that --blocks may list as live at the peak, although they came later",
         REC_COUNTER_NOTE, facts->blocks->births.lost},
        {"block_birth_error_ms",
         "milliseconds by which a block that --blocks lists may be younger than it states, at most",
         REC_COUNTER_NOTE, facts->blocks->birth_error_ms},
    };
    return snapshot_counters_add_rare(&s->counters, aggregator, notes, ARRAY_LEN(notes));
}

// Limit the slices to the peak: they are sums of estimates if blocks are unsampled, and of books
// that threads send at different moments, and the peak is known better. No part of the run
// exceeds it.
static void clip_slices(struct rec_slice *slices, size_t count, uint64_t peak_bytes)
{
    for (size_t i = 0; i < count; i++) {
        struct rec_slice *slice = &slices[i];
        slice->live_max_bytes = min_u64(slice->live_max_bytes, peak_bytes);
        slice->live_bytes = min_u64(slice->live_bytes, slice->live_max_bytes);
    }
}

static enum err fill_slices(struct aggregator_snapshot *s, const struct aggregator *aggregator)
{
    const struct series *series = &aggregator->totals.series;
    TRY(rec_slice_vec_resize(&s->slices, series->current + 1));
    s->slices.len = series_collect(series, &aggregator->totals.sums, s->slices.items);
    if (aggregator->has_book_peak) {
        clip_slices(s->slices.items, s->slices.len, s->recording.totals.peak_bytes);
    }
    return ERR_OK;
}

enum err aggregator_snapshot_lend_strings(struct aggregator_snapshot *snapshot,
                                          struct aggregator *aggregator)
{
    struct string_table *strings = &aggregator->strings;
    size_t count = string_table_count(strings);
    u64_vec_clear(&snapshot->string_offsets);
    TRY(u64_vec_resize(&snapshot->string_offsets, count));
    // The table stores no text for id 0, the empty string: any terminator is valid.
    snapshot->string_offsets.items[0] = strings->texts.len - 1;
    for (size_t id = 1; id < count; id++) {
        snapshot->string_offsets.items[id] = strings->entries.items[id - 1].offset;
    }
    snapshot->recording.strings = (struct rec_strings){
        .data = strings->texts.items,
        .offsets = snapshot->string_offsets.items,
        .count = (uint32_t)count,
        .data_bytes = strings->texts.len,
    };
    return ERR_OK;
}

static void lend_tables(struct aggregator_snapshot *s,
                        const struct aggregator *aggregator,
                        const struct proc_sampler *sampler)
{
    struct recording *r = &s->recording;
    r->processes = s->processes.items;
    r->process_count = s->processes.len;
    r->threads = aggregator->threads.threads.items;
    r->thread_count = aggregator->threads.threads.len;
    r->modules = aggregator->stacks.modules.items;
    r->module_count = aggregator->stacks.modules.len;
    r->frames = aggregator->stacks.frames.items;
    r->frame_count = aggregator->stacks.frames.len;
    r->nodes = aggregator->stacks.nodes.items;
    r->node_count = aggregator->stacks.nodes.len;
    r->rows = aggregator->totals.rows.rows.items;
    r->row_count = aggregator->totals.rows.rows.len;
    r->slices = s->slices.items;
    r->slice_count = s->slices.len;
    r->slice_ms = aggregator->totals.series.slice_ms;
    r->cohorts = s->history.cohorts.items;
    r->cohort_count = s->history.cohorts.len;
    r->mappings = aggregator->mappings.items;
    r->mapping_count = aggregator->mappings.len;
    r->adhoc = aggregator->adhoc.items;
    r->adhoc_count = aggregator->adhoc.len;
    r->reallocs = s->reallocs.items;
    r->realloc_count = s->reallocs.len;
    r->counters = s->counters.items;
    r->counter_count = s->counters.len;
    if (sampler != NULL) {
        r->rss_samples = sampler->samples.items;
        r->rss_sample_count = sampler->samples.len;
    }
    r->memory_snapshots = s->memory_snapshots.items;
    r->memory_snapshot_count = s->memory_snapshots.len;
    r->parts = s->rss_tables.parts.items;
    r->part_count = s->rss_tables.parts.len;
    r->survivors = s->rss_tables.survivors.items;
    r->survivor_count = s->rss_tables.survivors.len;
}

// Copy the programs, except those with every exec withdrawn.
static enum err fill_unrecorded(struct aggregator_snapshot *s,
                                const struct aggregator_snapshot_facts *facts)
{
    for (size_t i = 0; i < facts->unrecorded_count; i++) {
        if (facts->unrecorded[i].execs > 0) {
            TRY(rec_unrecorded_vec_push(&s->unrecorded, facts->unrecorded[i]));
        }
    }
    s->recording.unrecorded = s->unrecorded.items;
    s->recording.unrecorded_count = s->unrecorded.len;
    return ERR_OK;
}

enum err aggregator_snapshot_take(struct aggregator *aggregator,
                                  const struct proc_sampler *sampler,
                                  const struct memory_snapshots *snapshots,
                                  const struct aggregator_snapshot_facts *facts,
                                  struct aggregator_snapshot *out)
{
    CLEANUP(aggregator_snapshot_release) struct aggregator_snapshot s = {0};
    TRY(fill_meta(aggregator, facts, &s.recording.meta));
    TRY(fill_processes(&s, aggregator, sampler, facts));
    TRY(complete_threads(aggregator));
    TRY(aggregator_extend(aggregator, runtime_ms_of(aggregator, facts)));
    TRY(aggregator_complete_rows(aggregator));
    fill_totals(aggregator, facts->events, &s.recording.totals);
    TRY(fill_slices(&s, aggregator));
    TRY(row_history_begin(&s.history, &aggregator->totals.rows));
    TRY(realloc_table_collect(&aggregator->reallocs, &s.reallocs));
    TRY(snapshot_counters_fill(&s.counters, aggregator, facts));
    TRY(fill_blocks(&s, aggregator, facts));
    if (snapshots != NULL) {
        TRY(memory_snapshots_collect(snapshots, &s.memory_snapshots, &s.rss_tables));
    }
    TRY(aggregator_snapshot_lend_strings(&s, aggregator));
    lend_tables(&s, aggregator, sampler);
    s.recording.marks = facts->marks;
    s.recording.mark_count = facts->mark_count;
    s.recording.hooks = facts->hooks;
    s.recording.hook_count = facts->hook_count;
    TRY(fill_unrecorded(&s, facts));
    *out = TAKE(s);
    return ERR_OK;
}

// Measured in compilers, shells with many children, and python3, with 0.02 to 0.5 million nodes.
uint64_t aggregator_snapshot_cost_ms(const struct aggregator *aggregator)
{
    enum {
        NODE_NS = 150,
        ROW_NS = 800,
    };
    return (aggregator->stacks.nodes.len * NODE_NS + aggregator->totals.rows.rows.len * ROW_NS) /
           NS_PER_MS;
}

void aggregator_snapshot_release(struct aggregator_snapshot *snapshot)
{
    rec_process_vec_release(&snapshot->processes);
    row_history_release(&snapshot->history);
    rec_slice_vec_release(&snapshot->slices);
    rec_realloc_vec_release(&snapshot->reallocs);
    rec_counter_vec_release(&snapshot->counters);
    rec_block_vec_release(&snapshot->blocks);
    rec_memory_snapshot_vec_release(&snapshot->memory_snapshots);
    rss_tables_release(&snapshot->rss_tables);
    rec_unrecorded_vec_release(&snapshot->unrecorded);
    u64_vec_release(&snapshot->string_offsets);
    snapshot->recording = (struct recording){0};
}
