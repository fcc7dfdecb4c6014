// SPDX-License-Identifier: MIT
#include "recorder/samples/proc_reading.h"

#include <stddef.h>
#include <unistd.h>

#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/proc_text.h"

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

// Return zeros if they cannot be read.
static struct proc_pages read_pages(pid_t pid)
{
    char text[256];
    return read_proc(pid, "statm", text, sizeof(text)) ? proc_text_pages(text)
                                                       : (struct proc_pages){0};
}

struct proc_resident proc_resident_read(pid_t pid)
{
    struct proc_pages pages = read_pages(pid);
    if (pages.resident == 0) {
        pages = read_pages(proc_file_living(pid));
    }
    return (struct proc_resident){.rss_bytes = pages.resident * page_bytes(),
                                  .shared_bytes = pages.shared * page_bytes()};
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

// Let the kinds add up to the resident bytes: pages have come or gone since the kinds were read.
// Where there is shared memory, most of these are of it.
static void fit_kinds(struct rec_rss_sample *sample, uint64_t anonymous_bytes)
{
    sample->anonymous_bytes = min_u64(anonymous_bytes, sample->rss_bytes);
    const uint64_t shared_bytes = sample->rss_bytes - sample->anonymous_bytes;
    if (sample->shmem_bytes > 0) {
        sample->file_bytes = min_u64(sample->file_bytes, shared_bytes);
        sample->shmem_bytes = shared_bytes - sample->file_bytes;
    } else {
        sample->file_bytes = shared_bytes;
    }
}

// smaps_rollup is exact; status may lag by some pages a thread. The kernel walks the page tables
// for it, so only the total, the anonymous memory and the shares of the kinds come from it. Kernels
// before 5.3 divide only the total: then the anonymous memory counts as unshared.
static void read_rollup(pid_t pid, struct proc_reading *out)
{
    char text[4096];
    struct rec_rss_sample *sample = &out->sample;
    if (!read_proc(pid, "smaps_rollup", text, sizeof(text))) {
        return;
    }
    const uint64_t rss_bytes = proc_text_kib(text, "Rss");
    if (rss_bytes > 0) {
        sample->rss_bytes = rss_bytes;
        fit_kinds(sample, proc_text_kib(text, "Anonymous"));
    }
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

static void read_stat(pid_t pid, struct proc_reading *out)
{
    char text[2048];
    if (read_proc(pid, "stat", text, sizeof(text))) {
        const struct proc_faults faults = proc_text_faults(text);
        out->sample.minor_faults = faults.minor;
        out->sample.major_faults = faults.major;
        out->image = proc_text_image(text);
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
    read_stat(pid, reading);
    read_break(pid, &reading->sample);
}
