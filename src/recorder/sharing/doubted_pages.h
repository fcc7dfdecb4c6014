// SPDX-License-Identifier: MIT
// doubted_pages: shared pages of samples of one moment that may count twice.
//
// Processes are looked at one after the other, and the cheapest look does not say which pages are
// shared. So pages of files and of shared memory that a process got since the latest samples, or
// while others were read, may be in the figures of another process, too. They are doubted: they
// count as repeated, so that no page counts twice, and doubted_bytes says how much more it may be.
//
//   admit    one process has that many: so much of what is doubted must count
//   limit    all together have no more: so much of the doubt is over
//
// Invariant: doubted_bytes is at most what is repeated of files and shared memory.
// Owner of the samples: the caller. Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "recording/format/tables.h"

// Return the file and shared pages of a sample: all, and those that count in a sum.
uint64_t shared_bytes_of(const struct rec_rss_sample *sample);
uint64_t shared_bytes_counted(const struct rec_rss_sample *sample);

// Doubt `bytes` more of the file and shared pages that count.
void doubted_pages_add(struct rec_rss_sample *sample, uint64_t bytes);

// Let at most `bytes` of what is doubted count. Return how many do.
uint64_t doubted_pages_admit(struct rec_rss_sample *samples, size_t count, uint64_t bytes);

// Let at most `bytes` be doubted.
void doubted_pages_limit(struct rec_rss_sample *samples, size_t count, uint64_t bytes);

// The same for one sample of several; *left is what the samples after it may doubt.
void doubted_pages_limit_next(struct rec_rss_sample *sample, uint64_t *left);
