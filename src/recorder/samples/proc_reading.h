// SPDX-License-Identifier: MIT
// proc_reading: what one look at a process in /proc says of its resident memory.
//
//   proc_resident   statm alone, some 5 us: for glances
//   proc_reading    status, smaps_rollup, stat and maps, some 30 us: for samples
//
// A process that has ended, or must not be read, gives zeros. Where its first thread has ended, one
// that lives is read. Context: H, the recorder's main thread, or the one that reads aside.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "recording/format/tables.h"

struct proc_resident {
    uint64_t rss_bytes;
    uint64_t shared_bytes; // of it: files and shared memory
};

struct proc_resident proc_resident_read(pid_t pid);

// What is read of one process for a sample; it may be read aside.
struct proc_reading {
    pid_t pid;
    bool is_brief; // slow but page-exact figures are omitted: a memory snapshot corrects the sample
    // Results. rss_bytes is 0 if it cannot be read.
    struct rec_rss_sample sample; // without time, process and mapped_bytes
    uint64_t proportional_anonymous_bytes;
    uint64_t proportional_file_bytes;
    uint64_t proportional_shmem_bytes;
    uint64_t highest_bytes; // the kernel's own high-water mark
    uint64_t image;         // proc_text_image
    bool is_confined;       // runs under seccomp
};

void proc_reading_take(struct proc_reading *reading);
