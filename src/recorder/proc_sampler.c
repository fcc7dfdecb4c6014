// SPDX-License-Identifier: MIT
// proc_sampler: see proc_sampler.h.
#include "recorder/proc_sampler.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/file.h"
#include "recorder/proc_text.h"

// One round may take this share of the time until the next.
#define COST_DIVISOR 100u

void proc_sampler_init(struct proc_sampler *sampler)
{
    *sampler = (struct proc_sampler){.interval_ms = PROC_SAMPLER_INTERVAL_MS};
}

void proc_sampler_release(struct proc_sampler *sampler)
{
    rss_sample_vec_release(&sampler->samples);
}

bool proc_sampler_due(const struct proc_sampler *sampler, uint64_t now_ms)
{
    return now_ms >= sampler->next_ms;
}

// Reads /proc/PID/`name` into `buffer` as text. These files are short and of the kernel's making.
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
    record->peak_rss_bytes =
        highest_bytes > record->peak_rss_bytes ? highest_bytes : record->peak_rss_bytes;
    return sample->rss_bytes > 0; // a zombie has none
}

// smaps_rollup is exact where status may lag behind by some pages a thread; the kernel walks the
// page tables for it, so it is asked only for the total.
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
                           struct book_process *process,
                           uint64_t now_ms,
                           bool follows,
                           struct proc_sample_facts *facts)
{
    struct rec_rss_sample sample = {
        .time_ms = now_ms, .process = process->index, .mapped_bytes = process->mapped_bytes};
    if (!read_status(pid, &sample, &process->record, facts)) {
        return 0;
    }
    if (!follows) {
        read_rollup(pid, &sample);
    }
    read_faults(pid, &sample);
    read_break(pid, &sample);
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

// For each process the index of its highest sample, as a table indexed by process; NULL: no memory.
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

// Keeps every second moment (all processes of one round share a moment) and each highest sample.
static void thin_out(struct proc_sampler *sampler)
{
    struct rss_sample_vec *samples = &sampler->samples;
    size_t *highest = highest_samples(samples);
    if (highest == NULL) {
        return; // tried again after the next round
    }
    size_t kept = 0;
    uint64_t moment = UINT64_MAX;
    bool keep_moment = false;
    for (size_t i = 0; i < samples->len; i++) {
        const struct rec_rss_sample sample = samples->items[i];
        if (sample.time_ms != moment) {
            moment = sample.time_ms;
            keep_moment = !keep_moment;
        }
        if (keep_moment || highest[sample.process] == i) {
            samples->items[kept++] = sample;
        }
    }
    samples->len = kept;
    free(highest);
}

void proc_sampler_end_round(struct proc_sampler *sampler, uint64_t now_ms, uint64_t spent_ns)
{
    if (sampler->samples.len >= PROC_SAMPLER_MAX_SAMPLES) {
        thin_out(sampler);
        sampler->interval_ms *= 2;
    }
    const uint64_t affordable_ms = spent_ns * COST_DIVISOR / 1000000;
    const uint64_t interval_ms =
        affordable_ms > sampler->interval_ms ? affordable_ms : sampler->interval_ms;
    sampler->next_ms = now_ms + interval_ms;
}
