// SPDX-License-Identifier: MIT
// push_spool: the profiles that wait for the collector, oldest first, within a bound.
//
// With a folder each entry is a file, 00000001763914209123456789.push, named by its time, so that
// they outlive the process and the next one sends them. Without, they are in memory. One entry that
// cannot be written, because the disk is full for example, waits in memory, too: the collector may
// take it at once. If a new entry does not fit, the oldest go; one that is larger than the bound is
// not taken at all. Each loss is counted. A folder belongs to one process at a time: it is locked.
// Context: H; one thread. Trust: files of the folder are hostile; links and others are left alone.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"

struct push_entry {
    uint64_t order;     // of its file's name
    uint64_t bytes;     // its size
    bool is_in_memory;  // else it is in a file
    struct strbuf text; // owned; empty if it is in a file
};

DEFINE_VEC(push_entry_vec, struct push_entry);

struct push_spool {
    int folder; // owned; -1: in memory
    uint64_t max_bytes;
    uint64_t bytes;                // of all entries
    uint64_t lost_count;           // entries that were dropped, or could not be kept or read
    struct push_entry_vec entries; // owned; oldest first
};

// Open the folder, which is created if it is missing; NULL: keep entries in memory. ERR_IO and
// ERR_INVALID (used by another process) with a sentence.
enum err push_spool_open(const char *folder,
                         uint64_t max_bytes,
                         struct push_spool *out,
                         struct err_info *info) MUST_USE;
void push_spool_close(struct push_spool *spool); // entries in files stay

// Add an entry. `order`: its time, in nanoseconds. A failure is counted as a loss.
void push_spool_add(struct push_spool *spool, uint64_t order, struct bytes entry);

// Before the end: write what waits in memory to the folder. What cannot be written is lost.
void push_spool_settle(struct push_spool *spool);

// Append the oldest entry to `out`. ERR_NOT_FOUND: there is none. An unreadable one is dropped.
enum err push_spool_oldest(struct push_spool *spool, struct strbuf *out) MUST_USE;

// Remove the oldest entry; `is_lost`: it was not delivered.
void push_spool_drop(struct push_spool *spool, bool is_lost);
