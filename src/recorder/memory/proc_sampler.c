// SPDX-License-Identifier: MIT
#include "recorder/memory/proc_sampler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/order.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/proc_text.h"
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

// Read /proc/PID/`name` into `buffer` as text. The kernel writes these files, and they are short.
static bool read_proc(pid_t pid, const char *name, char *buffer, size_t size)
{
    CLEANUP(fd_closep) int fd = proc_file_open(pid, name);
    if (fd < 0) {
        return false;
    }
    size_t used = 0;
    while (used + 1 < size) {
        const ssize_t got = read(fd, buffer + used, size - 1 - used);
        if (got < 0) {
            return false; // ESRCH: it ended meanwhile
        }
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    buffer[used] = '\0';
    return used > 0;
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

// Return the file and shared pages that count in a sum.
static uint64_t shared_once(const struct rec_rss_sample *sample)
{
    return sample->file_bytes - sample->repeated_file_bytes + sample->shmem_bytes -
           sample->repeated_shmem_bytes;
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
    // More shared pages of a process that repeats some are most likely repeated, too. If they are
    // not, the next sample adds them.
    const uint64_t file_bytes = min_u64(sample.file_bytes, latest->file_bytes);
    sample.repeated_file_bytes =
        repeated_of(file_bytes, latest->repeated_file_bytes, latest->file_bytes) +
        (latest->repeated_file_bytes > 0 ? sample.file_bytes - file_bytes : 0);
    sample.repeated_shmem_bytes =
        repeated_of(sample.shmem_bytes, latest->repeated_shmem_bytes, latest->shmem_bytes);
    sampler->now.rss_bytes += rec_rss_sample_counted(&sample);
    sampler->now.doubted_bytes += excess_u64(shared_once(&sample), shared_once(latest));
    keep(&sampler->now.samples, sample);
}

// Return zeros if they cannot be read.
static struct proc_pages read_pages(pid_t pid)
{
    char text[256];
    return read_proc(pid, "statm", text, sizeof(text)) ? proc_text_pages(text)
                                                       : (struct proc_pages){0};
}

void proc_sampler_glance(struct proc_sampler *sampler,
                         pid_t pid,
                         const struct aggregator_process *process,
                         uint64_t now_ms)
{
    struct proc_pages pages = read_pages(pid);
    if (pages.resident == 0) {
        pages = read_pages(proc_file_living(pid));
    }
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    if (pages.resident > 0 && process->latest_sample.time_ms > 0) {
        proc_sampler_note_glance(sampler, process, now_ms, pages.resident * page_bytes,
                                 pages.shared * page_bytes);
    }
}

static uint64_t affordable_ms(uint64_t interval_ms, uint64_t spent_ns, uint64_t divisor)
{
    const uint64_t affordable_ms = spent_ns * divisor / 1000000;
    return affordable_ms > interval_ms ? affordable_ms : interval_ms;
}

// proc(5): /proc/PID/status has the split by kind at the price of one short read.
static bool read_status(pid_t pid, struct proc_reading *out)
{
    char text[8192];
    struct rec_rss_sample *sample = &out->sample;
    if (!read_proc(pid, "status", text, sizeof(text))) {
        return false;
    }
    sample->anonymous_bytes = proc_text_kib(text, "RssAnon");
    sample->file_bytes = proc_text_kib(text, "RssFile");
    sample->shmem_bytes = proc_text_kib(text, "RssShmem");
    sample->swap_bytes = proc_text_kib(text, "VmSwap");
    sample->rss_bytes = proc_text_kib(text, "VmRSS");
    sample->data_bytes = proc_text_kib(text, "VmData");
    out->is_confined = proc_text_kib(text, "Seccomp") != 0;
    out->highest_bytes = proc_text_kib(text, "VmHWM"); // of this image: an execve resets it
    return sample->rss_bytes > 0;                      // a zombie has none
}

// smaps_rollup is exact; status may lag by some pages a thread. The kernel walks the page tables
// for it, so only the total and the shares of the kinds come from it. Kernels before 5.3 divide
// only the total: then the anonymous memory counts as unshared.
static void read_rollup(pid_t pid, struct proc_reading *out)
{
    char text[4096];
    struct rec_rss_sample *sample = &out->sample;
    if (!read_proc(pid, "smaps_rollup", text, sizeof(text))) {
        return;
    }
    const uint64_t rss_bytes = proc_text_kib(text, "Rss");
    sample->rss_bytes = rss_bytes > 0 ? rss_bytes : sample->rss_bytes;
    if (proc_text_value(text, "Pss_Shmem") != NULL) {
        out->proportional_anonymous_bytes = proc_text_kib(text, "Pss_Anon");
        out->proportional_file_bytes = proc_text_kib(text, "Pss_File");
        out->proportional_shmem_bytes = proc_text_kib(text, "Pss_Shmem");
    } else if (proc_text_value(text, "Pss") != NULL) {
        const uint64_t rest_bytes = excess_u64(proc_text_kib(text, "Pss"), sample->anonymous_bytes);
        out->proportional_file_bytes = min_u64(sample->file_bytes, rest_bytes);
        out->proportional_shmem_bytes = rest_bytes - out->proportional_file_bytes;
    }
}

static void read_faults(pid_t pid, struct rec_rss_sample *sample)
{
    char text[2048];
    if (read_proc(pid, "stat", text, sizeof(text))) {
        const struct proc_faults faults = proc_text_faults(text);
        sample->minor_faults = faults.minor;
        sample->major_faults = faults.major;
    }
}

static void read_break(pid_t pid, struct rec_rss_sample *sample)
{
    char text[8192];
    if (read_proc(pid, "maps", text, sizeof(text))) {
        sample->break_bytes = proc_text_break(text);
    }
}

void proc_reading_take(struct proc_reading *reading)
{
    pid_t pid = reading->pid;
    if (!read_status(pid, reading)) {
        pid = proc_file_living(pid);
        if (!read_status(pid, reading)) {
            reading->sample = (struct rec_rss_sample){0};
            return;
        }
    }
    if (!reading->is_brief) {
        reading->proportional_anonymous_bytes = reading->sample.anonymous_bytes;
        reading->proportional_file_bytes = reading->sample.file_bytes;
        reading->proportional_shmem_bytes = reading->sample.shmem_bytes;
        read_rollup(pid, reading);
    }
    read_faults(pid, &reading->sample);
    read_break(pid, &reading->sample);
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
    for (size_t i = 0; i < round->len; i++) {
        const struct rec_rss_sample *sample = &round->items[i].sample;
        round->items[i].process->latest_sample = *sample;
        rss_bytes += rec_rss_sample_counted(sample);
        keep(&sampler->samples, *sample);
    }
    unsettled_sample_vec_clear(round);
    return rss_bytes;
}

void proc_sampler_correct(struct proc_sampler *sampler, const struct rec_memory_snapshot *snapshot)
{
    for (size_t i = sampler->samples.len; i > 0; i--) {
        struct rec_rss_sample *sample = sampler->samples.items + i - 1;
        if (sample->time_ms != snapshot->time_ms) {
            return;
        }
        if (sample->process == snapshot->process) {
            const uint64_t repeated_bytes =
                snapshot->rss_bytes - rec_snapshot_counted_rss(snapshot);
            sample->rss_bytes = snapshot->rss_bytes;
            sample->repeated_shmem_bytes =
                min_u64(snapshot->repeated_shared_bytes + snapshot->repeated_own_bytes,
                        min_u64(sample->shmem_bytes, repeated_bytes));
            sample->repeated_file_bytes =
                min_u64(snapshot->repeated_file_bytes,
                        min_u64(sample->file_bytes, repeated_bytes - sample->repeated_shmem_bytes));
            sample->repeated_anonymous_bytes =
                min_u64(sample->anonymous_bytes, repeated_bytes - sample->repeated_shmem_bytes -
                                                     sample->repeated_file_bytes);
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

static void forget_highest(struct proc_sampler *sampler)
{
    rss_sample_vec_clear(&sampler->highest.samples);
    sampler->highest.rss_bytes = 0;
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
    const uint64_t rss_bytes = sampler->now.rss_bytes;
    if (sampler->now.samples.len > 1 && now_ms >= sampler->affords_ms &&
        sampler->now.doubted_bytes > rss_bytes / DOUBTED_DIVISOR) {
        sampler->next_ms = min_u64(sampler->next_ms, now_ms);
    }
    // Samples may be taken at the same moment: the present glances come next time.
    if (now_ms >= sampler->stored_ms + sampler->interval_ms && sampler->highest.samples.len > 0) {
        store_highest(sampler);
        forget_highest(sampler);
        note_stored(sampler, now_ms);
    }
    if (rss_bytes > sampler->highest.rss_bytes) {
        const struct proc_glance lower = sampler->highest;
        sampler->highest = sampler->now;
        sampler->now = lower;
    }
    rss_sample_vec_clear(&sampler->now.samples);
    sampler->now.rss_bytes = 0;
    sampler->now.doubted_bytes = 0;
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
    forget_highest(sampler);
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
