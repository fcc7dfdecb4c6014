// SPDX-License-Identifier: MIT
// proc_sampler: see proc_sampler.h.
#include "recorder/proc_sampler.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/file.h"

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

// The number after "`key`:" at the beginning of a line, in bytes; 0 if the line is missing.
static uint64_t kib_field(const char *text, const char *key)
{
    const size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            return strtoull(line + length + 1, NULL, 10) * 1024;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return 0;
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
    sample->anonymous_bytes = kib_field(text, "RssAnon");
    sample->file_bytes = kib_field(text, "RssFile");
    sample->shmem_bytes = kib_field(text, "RssShmem");
    sample->swap_bytes = kib_field(text, "VmSwap");
    sample->rss_bytes = kib_field(text, "VmRSS");
    sample->data_bytes = kib_field(text, "VmData");
    facts->is_confined = kib_field(text, "Seccomp") != 0;
    const uint64_t highest_bytes = kib_field(text, "VmHWM"); // of this image: an execve resets it
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
        const uint64_t rss_bytes = kib_field(text, "Rss");
        sample->rss_bytes = rss_bytes > 0 ? rss_bytes : sample->rss_bytes;
    }
}

// proc(5): in stat, minflt is field 10 and majflt field 12; the name in field 2 ends at the last
// ')'.
static void read_faults(pid_t pid, struct rec_rss_sample *sample)
{
    char text[2048];
    if (!read_proc(pid, "stat", text, sizeof(text))) {
        return;
    }
    const char *after_name = strrchr(text, ')');
    if (after_name != NULL) {
        // Fields 3 to 12: state ppid pgrp session tty tpgid flags minflt cminflt majflt.
        (void)sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64,
                     &sample->minor_faults,
                     &sample->major_faults); // stays 0 if the kernel says it differently
    }
}

// The area of brk is called [heap] and lies behind the program's own mappings, near the beginning.
static void read_break(pid_t pid, struct rec_rss_sample *sample)
{
    char text[8192];
    if (!read_proc(pid, "maps", text, sizeof(text))) {
        return;
    }
    const char *name = strstr(text, "[heap]");
    const char *line = name;
    while (line != NULL && line > text && line[-1] != '\n') {
        line--;
    }
    uint64_t start = 0;
    uint64_t end = 0;
    if (line != NULL && sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && end > start) {
        sample->break_bytes = end - start;
    }
}

uint64_t proc_sampler_take(struct proc_sampler *sampler,
                           pid_t pid,
                           struct book_process *process,
                           uint64_t now_ms,
                           struct proc_sample_facts *facts)
{
    struct rec_rss_sample sample = {
        .time_ms = now_ms, .process = process->index, .mapped_bytes = process->mapped_bytes};
    if (!read_status(pid, &sample, &process->record, facts)) {
        return 0;
    }
    read_rollup(pid, &sample);
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
