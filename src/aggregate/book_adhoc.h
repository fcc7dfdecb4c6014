// SPDX-License-Identifier: MIT
// book_adhoc: events that the program reports and that are no allocations (cairn_event), by stack.
//
// Each (process, stack) has a row that counts its events and sums their weights; the leaf of the
// stack is the event's name. Never added to the heap. Context: H, one thread; part of the book.
// Failure: as there.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

struct book;
struct book_process;

DEFINE_VEC(rec_adhoc_vec, struct rec_adhoc);

// An event of that weight; `node` is its stack. A sum that is too large stays at its largest.
enum err book_adhoc(struct book *book, struct book_process *process, uint32_t node, uint64_t weight)
    MUST_USE;
