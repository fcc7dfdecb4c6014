// SPDX-License-Identifier: MIT
#include "recorder/samples/proc_sampler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "base/order.h"
#include "recorder/samples/sample_kinds.h"
#include "recorder/sharing/doubted_pages.h"
#include "recorder/sharing/shared_pages.h"

// A round may take this share of the time until the next one.
#define GLANCE_COST_DIVISOR 250u
#define SAMPLE_COST_DIVISOR 167u

// A sum that differs by less is the same.
#define STEADY_DIVISOR  64u
#define STEADY_BYTES    (256u << 10)
#define DOUBTED_DIVISOR 20u // so much of RSS is worth samples

void proc_sampler_init(struct proc_sampler *sampler)
{
    *sampler = (struct proc_sampler){.interval_ms = PROC_SAMPLER_INTERVAL_MS};
}

void proc_sampler_release(struct proc_sampler *sampler)
{
    rss_sample_vec_release(&sampler->samples);
    unsettled_sample_vec_release(&sampler->round);
    rss_sample_vec_release(&sampler->now.samples);
    rss_sample_vec_release(&sampler->highest.samples);
}

bool proc_sampler_glance_due(const struct proc_sampler *sampler, uint64_t now_ms)
{
    return now_ms >= sampler->next_glance_ms;
}

bool proc_sampler_due(const struct proc_sampler *sampler, uint64_t now_ms)
{
    return now_ms >= sampler->next_ms;
}

// Without memory the curve lacks a peak.
static void keep(struct rss_sample_vec *samples, struct rec_rss_sample sample)
{
    if (rss_sample_vec_reserve(samples, 1) == ERR_OK) {
        samples->items[samples->len++] = sample;
    }
}

// Return what is repeated of `bytes`, as of the bytes of an earlier sample.
static uint64_t repeated_of(uint64_t bytes, uint64_t earlier_repeated_bytes, uint64_t earlier_bytes)
{
    return share_u64(bytes, earlier_repeated_bytes, earlier_bytes);
}

static void add_glance(struct proc_glance *glance, const struct rec_rss_sample *sample)
{
    keep(&glance->samples, *sample);
    glance->rss_bytes += rec_rss_sample_counted(sample);
    glance->doubted_bytes += sample->doubted_bytes;
    glance->shared_bytes += shared_bytes_counted(sample);
    glance->most_shared_bytes = max_u64(glance->most_shared_bytes, shared_bytes_of(sample));
}

// The process with the most shared pages must have them: those that count may all be others.
static void settle_doubts(struct proc_glance *glance)
{
    const uint64_t owed_bytes = excess_u64(glance->most_shared_bytes, glance->shared_bytes);
    glance->rss_bytes +=
        doubted_pages_admit(glance->samples.items, glance->samples.len, owed_bytes);
}

static void glance_clear(struct proc_glance *glance)
{
    rss_sample_vec_clear(&glance->samples);
    *glance = (struct proc_glance){.samples = glance->samples};
}

void proc_sampler_note_glance(struct proc_sampler *sampler,
                              const struct aggregator_process *process,
                              uint64_t now_ms,
                              uint64_t rss_bytes,
                              uint64_t shared_bytes)
{
    struct rec_rss_sample sample = process->latest_sample;
    const uint64_t shared = shared_bytes < rss_bytes ? shared_bytes : rss_bytes;
    sample.time_ms = now_ms;
    sample.process = process->index;
    sample.rss_bytes = rss_bytes;
    sample.anonymous_bytes = rss_bytes - shared;
    sample.shmem_bytes = min_u64(sample.shmem_bytes, shared);
    sample.file_bytes = shared - sample.shmem_bytes;
    sample.mapped_bytes = process->mapped_bytes;
    const struct rec_rss_sample *latest = &process->latest_sample;
    sample.repeated_anonymous_bytes = repeated_of(
        sample.anonymous_bytes, latest->repeated_anonymous_bytes, latest->anonymous_bytes);
    const uint64_t file_bytes = min_u64(sample.file_bytes, latest->file_bytes);
    sample.repeated_file_bytes =
        repeated_of(file_bytes, latest->repeated_file_bytes, latest->file_bytes);
    sample.repeated_shmem_bytes =
        repeated_of(sample.shmem_bytes, latest->repeated_shmem_bytes, latest->shmem_bytes);
    doubted_pages_limit(&sample, 1, UINT64_MAX); // some of them may be gone
    doubted_pages_add(&sample, excess_u64(shared, shared_bytes_of(latest)));
    add_glance(&sampler->now, &sample);
}

void proc_sampler_note_shared(pid_t pid, struct aggregator_process *process)
{
    process->glanced_shared_bytes = proc_resident_read(pid).shared_bytes;
}

uint64_t proc_sampler_late_bytes(pid_t pid, const struct aggregator_process *process)
{
    return excess_u64(proc_resident_read(pid).shared_bytes, process->glanced_shared_bytes);
}

void proc_sampler_glance(struct proc_sampler *sampler,
                         pid_t pid,
                         struct aggregator_process *process,
                         uint64_t now_ms)
{
    const struct proc_resident resident = proc_resident_read(pid);
    process->glanced_shared_bytes = resident.shared_bytes;
    if (resident.rss_bytes > 0 && process->latest_sample.time_ms > 0) {
        proc_sampler_note_glance(sampler, process, now_ms, resident.rss_bytes,
                                 resident.shared_bytes);
    }
}

static uint64_t affordable_ms(uint64_t interval_ms, uint64_t spent_ns, uint64_t divisor)
{
    const uint64_t affordable_ms = spent_ns * divisor / 1000000;
    return affordable_ms > interval_ms ? affordable_ms : interval_ms;
}

// Pages that it got since the round began may be in the figures of processes read before.
static void leave_late_out(struct unsettled_sample *taken, uint64_t bytes)
{
    const uint64_t of_shmem = min_u64(bytes, taken->proportional_shmem_bytes);
    const uint64_t of_files = min_u64(bytes - of_shmem, taken->proportional_file_bytes);
    taken->proportional_shmem_bytes -= of_shmem;
    taken->proportional_file_bytes -= of_files;
    taken->late_bytes = of_shmem + of_files;
}

void proc_sampler_put(struct proc_sampler *sampler,
                      const struct proc_reading *reading,
                      struct aggregator_process *process,
                      uint64_t now_ms)
{
    struct unsettled_sample taken = {.process = process,
                                     .sample = reading->sample,
                                     .proportional_anonymous_bytes =
                                         reading->proportional_anonymous_bytes,
                                     .proportional_file_bytes = reading->proportional_file_bytes,
                                     .proportional_shmem_bytes = reading->proportional_shmem_bytes};
    taken.sample.time_ms = now_ms;
    taken.sample.process = process->index;
    taken.sample.mapped_bytes = process->mapped_bytes;
    leave_late_out(&taken,
                   excess_u64(shared_bytes_of(&taken.sample), process->glanced_shared_bytes));
    process->record.peak_rss_bytes =
        max_u64(process->record.peak_rss_bytes, reading->highest_bytes);
    if (unsettled_sample_vec_push(&sampler->round, taken) != ERR_OK) {
        process->latest_sample = taken.sample; // the curve has a gap
    }
}

static int compare_unsettled(const void *left, const void *right)
{
    const struct unsettled_sample *a = left;
    const struct unsettled_sample *b = right;
    return order_u64(a->sample.process, b->sample.process);
}

// Settle one kind of page: `bytes`, `repeated` and `proportional` are offsets of its figures.
static void
settle_kind(struct unsettled_sample_vec *round, size_t bytes, size_t repeated, size_t proportional)
{
    CLEANUP(shared_amount_vec_release) struct shared_amount_vec amounts = {0};
    for (size_t i = 0; i < round->len; i++) {
        char *taken = (char *)(round->items + i);
        const struct shared_amount amount = {
            .bytes = *(uint64_t *)(void *)(taken + bytes),
            .proportional_bytes = *(uint64_t *)(void *)(taken + proportional),
            .repeated_bytes = (uint64_t *)(void *)(taken + repeated)};
        if (shared_amount_vec_push(&amounts, amount) != ERR_OK) {
            return; // shared pages count several times
        }
    }
    shared_pages_settle_amounts(amounts.items, amounts.len);
}

#define SETTLE_KIND(round, kind)                                                   \
    settle_kind(round, offsetof(struct unsettled_sample, sample.kind##_bytes),     \
                offsetof(struct unsettled_sample, sample.repeated_##kind##_bytes), \
                offsetof(struct unsettled_sample, proportional_##kind##_bytes))

// Doubt what was left out as late, unless the process with the most shared pages has it. Return how
// many file and shared pages the processes have together at most.
static uint64_t doubt_late(struct unsettled_sample_vec *round)
{
    uint64_t at_most = 0; // as if nothing had been late
    uint64_t counted_bytes = 0;
    for (size_t i = 0; i < round->len; i++) {
        struct unsettled_sample *taken = round->items + i;
        taken->sample.doubted_bytes = taken->late_bytes;
        at_most +=
            taken->late_bytes + taken->proportional_file_bytes + taken->proportional_shmem_bytes;
        counted_bytes += shared_bytes_counted(&taken->sample);
    }
    uint64_t left = excess_u64(at_most, counted_bytes);
    for (size_t i = 0; i < round->len; i++) {
        doubted_pages_limit_next(&round->items[i].sample, &left);
    }
    return max_u64(at_most, counted_bytes);
}

// Return how many shared pages the processes of an earlier moment have lost by the round.
static uint64_t lost_bytes(const struct unsettled_sample_vec *round,
                           const struct rec_rss_sample *earlier,
                           size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct unsettled_sample key = {.sample = earlier[i]};
        const struct unsettled_sample *found =
            round->len > 0 ? bsearch(&key, round->items, round->len, sizeof(key), compare_unsettled)
                           : NULL;
        bytes += excess_u64(shared_bytes_of(earlier + i),
                            found != NULL ? shared_bytes_of(&found->sample) : 0);
    }
    return bytes;
}

// The moments before had no more shared pages than the round has, and what was lost since then.
static void limit_earlier_doubts(struct proc_sampler *sampler, uint64_t at_most)
{
    struct rec_rss_sample *samples = sampler->samples.items;
    uint64_t doubted_bytes = 1;
    size_t end = sampler->samples.len;
    for (size_t first = end; first > 0 && doubted_bytes > 0; end = first) {
        uint64_t counted_bytes = 0;
        doubted_bytes = 0;
        while (first > 0 && samples[first - 1].time_ms == samples[end - 1].time_ms) {
            first--;
            doubted_bytes += samples[first].doubted_bytes;
            counted_bytes += shared_bytes_counted(samples + first);
        }
        if (doubted_bytes > 0) {
            const uint64_t most_bytes =
                at_most + lost_bytes(&sampler->round, samples + first, end - first);
            doubted_pages_limit(samples + first, end - first,
                                excess_u64(most_bytes, counted_bytes));
        }
    }
}

uint64_t proc_sampler_settle(struct proc_sampler *sampler)
{
    struct unsettled_sample_vec *round = &sampler->round;
    uint64_t rss_bytes = 0;
    unsettled_sample_vec_sort(round, compare_unsettled);
    if (round->len > 1) {
        SETTLE_KIND(round, anonymous);
        SETTLE_KIND(round, file);
        SETTLE_KIND(round, shmem);
    }
    limit_earlier_doubts(sampler, doubt_late(round));
    for (size_t i = 0; i < round->len; i++) {
        const struct rec_rss_sample *sample = &round->items[i].sample;
        round->items[i].process->latest_sample = *sample;
        rss_bytes += rec_rss_sample_counted(sample);
        keep(&sampler->samples, *sample);
    }
    unsettled_sample_vec_clear(round);
    return rss_bytes;
}

void proc_sampler_correct(struct proc_sampler *sampler,
                          const struct rec_memory_snapshot *snapshot,
                          bool is_late)
{
    for (size_t i = sampler->samples.len; i > 0; i--) {
        struct rec_rss_sample *sample = sampler->samples.items + i - 1;
        if (sample->time_ms != snapshot->time_ms) {
            return;
        }
        if (sample->process == snapshot->process) {
            const uint64_t at_most = rec_rss_sample_counted(sample) + sample->doubted_bytes;
            const uint64_t repeated_bytes =
                snapshot->rss_bytes - rec_snapshot_counted_rss(snapshot);
            sample_kinds_fit(sample, snapshot);
            sample->repeated_shmem_bytes =
                min_u64(snapshot->repeated_shared_bytes + snapshot->repeated_own_bytes,
                        min_u64(sample->shmem_bytes, repeated_bytes));
            sample->repeated_file_bytes =
                min_u64(snapshot->repeated_file_bytes,
                        min_u64(sample->file_bytes, repeated_bytes - sample->repeated_shmem_bytes));
            sample->repeated_anonymous_bytes =
                min_u64(sample->anonymous_bytes, repeated_bytes - sample->repeated_shmem_bytes -
                                                     sample->repeated_file_bytes);
            sample->doubted_bytes =
                is_late ? excess_u64(at_most, rec_rss_sample_counted(sample)) : 0;
            doubted_pages_limit(sample, 1, UINT64_MAX);
        }
    }
}

// Return a table from process to the index of its highest sample; NULL: no memory.
static size_t *highest_samples(const struct rss_sample_vec *samples)
{
    uint32_t processes = 0;
    for (size_t i = 0; i < samples->len; i++) {
        const uint32_t process = samples->items[i].process;
        processes = process >= processes ? process + 1 : processes;
    }
    size_t *highest = malloc(processes * sizeof(*highest));
    for (size_t i = 0; highest != NULL && i < processes; i++) {
        highest[i] = SIZE_MAX;
    }
    for (size_t i = 0; highest != NULL && i < samples->len; i++) {
        size_t *best = &highest[samples->items[i].process];
        if (*best == SIZE_MAX || samples->items[i].rss_bytes > samples->items[*best].rss_bytes) {
            *best = i;
        }
    }
    return highest;
}

// Return the end of the moment that begins at `first`, and its sum.
static size_t end_of_moment(const struct rss_sample_vec *samples, size_t first, uint64_t *out_bytes)
{
    size_t end = first;
    *out_bytes = 0;
    while (end < samples->len && samples->items[end].time_ms == samples->items[first].time_ms) {
        *out_bytes += rec_rss_sample_counted(&samples->items[end++]);
    }
    return end;
}

// Keep the higher one of every two moments (all processes of one round share a moment), and each
// process's highest sample.
static void thin_out(struct proc_sampler *sampler)
{
    struct rss_sample_vec *samples = &sampler->samples;
    size_t *highest = highest_samples(samples);
    if (highest == NULL) {
        return; // tried again after the next round
    }
    size_t kept = 0;
    for (size_t first = 0; first < samples->len;) {
        uint64_t one_bytes;
        uint64_t other_bytes;
        const size_t middle = end_of_moment(samples, first, &one_bytes);
        const size_t end = end_of_moment(samples, middle, &other_bytes);
        const bool keeps_first = one_bytes >= other_bytes;
        for (size_t i = first; i < end; i++) {
            const struct rec_rss_sample sample = samples->items[i];
            if ((i < middle) == keeps_first || highest[sample.process] == i) {
                samples->items[kept++] = sample;
            }
        }
        first = end;
    }
    samples->len = kept;
    free(highest);
}

// Make room for the next moment after one was stored.
static void note_stored(struct proc_sampler *sampler, uint64_t now_ms)
{
    sampler->stored_ms = now_ms;
    if (sampler->samples.len >= PROC_SAMPLER_MAX_SAMPLES) {
        thin_out(sampler);
        sampler->interval_ms *= 2;
    }
}

static void store_highest(struct proc_sampler *sampler)
{
    for (size_t i = 0; i < sampler->highest.samples.len; i++) {
        keep(&sampler->samples, sampler->highest.samples.items[i]);
    }
}

// The rest of a sum that moves ends: samples come as if there had been none.
static void end_rest(struct proc_sampler *sampler)
{
    sampler->next_ms = min_u64(sampler->next_ms, sampler->stored_ms + sampler->interval_ms);
}

// Note the sum of all glances. It is steady if it has been about the same for a second.
static void note_sum(struct proc_sampler *sampler, uint64_t rss_bytes, uint64_t now_ms)
{
    const uint64_t from = sampler->steady_bytes;
    const uint64_t change = distance_u64(rss_bytes, from);
    if (change > max_u64(from / STEADY_DIVISOR, STEADY_BYTES)) {
        sampler->steady_bytes = rss_bytes;
        sampler->moved_ms = now_ms;
        end_rest(sampler);
    }
    sampler->is_steady = now_ms >= sampler->moved_ms + PROC_SAMPLER_REST_GLANCE_MS;
}

void proc_sampler_set_rest(struct proc_sampler *sampler, bool is_resting, uint64_t now_ms)
{
    if (sampler->is_resting && !is_resting) {
        end_rest(sampler);
        sampler->next_glance_ms = min_u64(sampler->next_glance_ms, now_ms + PROC_SAMPLER_GLANCE_MS);
    }
    sampler->is_resting = is_resting;
}

uint64_t proc_sampler_end_glances(struct proc_sampler *sampler, uint64_t now_ms, uint64_t spent_ns)
{
    settle_doubts(&sampler->now);
    const uint64_t rss_bytes = sampler->now.rss_bytes;
    if (sampler->now.samples.len > 1 && now_ms >= sampler->affords_ms &&
        sampler->now.doubted_bytes > rss_bytes / DOUBTED_DIVISOR) {
        sampler->next_ms = min_u64(sampler->next_ms, now_ms);
    }
    // Samples may be taken at the same moment: the present glances come next time.
    if (now_ms >= sampler->stored_ms + sampler->interval_ms && sampler->highest.samples.len > 0) {
        store_highest(sampler);
        glance_clear(&sampler->highest);
        note_stored(sampler, now_ms);
    }
    if (rss_bytes > sampler->highest.rss_bytes) {
        const struct proc_glance lower = sampler->highest;
        sampler->highest = sampler->now;
        sampler->now = lower;
    }
    glance_clear(&sampler->now);
    note_sum(sampler, rss_bytes, now_ms);
    const uint64_t pause_ms = affordable_ms(PROC_SAMPLER_GLANCE_MS,
                                            spent_ns << sampler->thrift_bits, GLANCE_COST_DIVISOR);
    sampler->next_glance_ms =
        proc_sampler_is_at_rest(sampler)
            ? next_whole_u64(now_ms + excess_u64(pause_ms, PROC_SAMPLER_REST_GLANCE_MS),
                             PROC_SAMPLER_REST_GLANCE_MS)
            : now_ms + pause_ms;
    return rss_bytes;
}

// Return the sum of the latest stored moment.
static uint64_t latest_sum(const struct rss_sample_vec *samples)
{
    uint64_t rss_bytes = 0;
    for (size_t i = samples->len;
         i > 0 && samples->items[i - 1].time_ms == samples->items[samples->len - 1].time_ms; i--) {
        rss_bytes += rec_rss_sample_counted(&samples->items[i - 1]);
    }
    return rss_bytes;
}

void proc_sampler_begin_round(struct proc_sampler *sampler, uint64_t now_ms)
{
    struct proc_glance *highest = &sampler->highest;
    const struct rss_sample_vec *samples = &sampler->samples;
    const bool is_between = highest->samples.len > 0 &&
                            highest->samples.items[0].time_ms < now_ms &&
                            (samples->len == 0 || highest->samples.items[0].time_ms >
                                                      samples->items[samples->len - 1].time_ms);
    if (is_between && highest->rss_bytes > latest_sum(samples)) {
        store_highest(sampler);
    }
    glance_clear(&sampler->highest);
}

void proc_sampler_end_round(struct proc_sampler *sampler, uint64_t now_ms, uint64_t spent_ns)
{
    note_stored(sampler, now_ms);
    const uint64_t cost_ns = spent_ns << sampler->thrift_bits;
    const uint64_t pause_ms = proc_sampler_is_at_rest(sampler)
                                  ? max_u64(sampler->interval_ms, PROC_SAMPLER_REST_MS)
                                  : sampler->interval_ms;
    sampler->affords_ms = now_ms + affordable_ms(0, cost_ns, SAMPLE_COST_DIVISOR);
    sampler->next_ms = now_ms + affordable_ms(pause_ms, cost_ns, SAMPLE_COST_DIVISOR);
}
