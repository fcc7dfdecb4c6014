// SPDX-License-Identifier: MIT
#include "recorder/memory/proc_sampler.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/minmax.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/proc_text.h"

// A round may take this share of the time until the next one.
#define GLANCE_COST_DIVISOR 250u
#define SAMPLE_COST_DIVISOR 167u

void proc_sampler_init(struct proc_sampler *sampler)
{
    *sampler = (struct proc_sampler){.interval_ms = PROC_SAMPLER_INTERVAL_MS};
}

void proc_sampler_release(struct proc_sampler *sampler)
{
    rss_sample_vec_release(&sampler->samples);
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
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
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
    sampler->now.rss_bytes += rss_bytes;
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
static bool read_status(pid_t pid,
                        struct rec_rss_sample *sample,
                        struct rec_process *record,
                        struct proc_sample_facts *facts)
{
    char text[8192];
    if (!read_proc(pid, "status", text, sizeof(text))) {
        return false;
    }
    sample->anonymous_bytes = proc_text_kib(text, "RssAnon");
    sample->file_bytes = proc_text_kib(text, "RssFile");
    sample->shmem_bytes = proc_text_kib(text, "RssShmem");
    sample->swap_bytes = proc_text_kib(text, "VmSwap");
    sample->rss_bytes = proc_text_kib(text, "VmRSS");
    sample->data_bytes = proc_text_kib(text, "VmData");
    facts->is_confined = proc_text_kib(text, "Seccomp") != 0;
    const uint64_t highest_bytes =
        proc_text_kib(text, "VmHWM"); // of this image: an execve resets it
    record->peak_rss_bytes = max_u64(record->peak_rss_bytes, highest_bytes);
    return sample->rss_bytes > 0; // a zombie has none
}

// smaps_rollup is exact; status may lag by some pages a thread. The kernel walks the page tables
// for it, so only the total comes from it.
static void read_rollup(pid_t pid, struct rec_rss_sample *sample)
{
    char text[4096];
    if (read_proc(pid, "smaps_rollup", text, sizeof(text))) {
        const uint64_t rss_bytes = proc_text_kib(text, "Rss");
        sample->rss_bytes = rss_bytes > 0 ? rss_bytes : sample->rss_bytes;
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

uint64_t proc_sampler_take(struct proc_sampler *sampler,
                           pid_t pid,
                           struct aggregator_process *process,
                           uint64_t now_ms,
                           bool follows,
                           struct proc_sample_facts *facts)
{
    struct rec_rss_sample sample = {
        .time_ms = now_ms, .process = process->index, .mapped_bytes = process->mapped_bytes};
    if (!read_status(pid, &sample, &process->record, facts)) {
        pid = proc_file_living(pid);
        if (!read_status(pid, &sample, &process->record, facts)) {
            return 0;
        }
    }
    if (!follows) {
        read_rollup(pid, &sample);
    }
    read_faults(pid, &sample);
    read_break(pid, &sample);
    process->latest_sample = sample;
    if (rss_sample_vec_push(&sampler->samples, sample) != ERR_OK) {
        return sample.rss_bytes; // the curve has a gap, the highest value is still known
    }
    return sample.rss_bytes;
}

void proc_sampler_correct(struct proc_sampler *sampler,
                          uint32_t process,
                          uint64_t time_ms,
                          uint64_t rss_bytes)
{
    for (size_t i = sampler->samples.len; i > 0; i--) {
        struct rec_rss_sample *sample = sampler->samples.items + i - 1;
        if (sample->time_ms != time_ms) {
            return;
        }
        if (sample->process == process) {
            sample->rss_bytes = rss_bytes;
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
        *out_bytes += samples->items[end++].rss_bytes;
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

uint64_t proc_sampler_end_glances(struct proc_sampler *sampler, uint64_t now_ms, uint64_t spent_ns)
{
    const uint64_t rss_bytes = sampler->now.rss_bytes;
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
    sampler->next_glance_ms =
        now_ms + affordable_ms(PROC_SAMPLER_GLANCE_MS, spent_ns << sampler->thrift_bits,
                               GLANCE_COST_DIVISOR);
    return rss_bytes;
}

// Return the sum of the latest stored moment.
static uint64_t latest_sum(const struct rss_sample_vec *samples)
{
    uint64_t rss_bytes = 0;
    for (size_t i = samples->len;
         i > 0 && samples->items[i - 1].time_ms == samples->items[samples->len - 1].time_ms; i--) {
        rss_bytes += samples->items[i - 1].rss_bytes;
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
    sampler->next_ms =
        now_ms +
        affordable_ms(sampler->interval_ms, spent_ns << sampler->thrift_bits, SAMPLE_COST_DIVISOR);
}
