// SPDX-License-Identifier: MIT
// region_cut: gives back what a region of words (session/books/block_words.h) does not use.
//
// A region takes 82 MiB of addresses for 64 MiB of the program's. A program that limits its address
// space may lack them. So what no word has been in by then is unmapped, and marked: blocks that
// would have their words there have entries from then on (live_entries.h).
//
// Order. A thread may put a word at the same time. It notes a table by compare and swap before it
// stores a word there, and so does region_cut, with another note. The one that is first decides.
// Whether blocks need tiny words may change at the same time, too: region_cut first marks that
// there are none any more, and then asks.
//
// Context: T, any thread, also in a handler that interrupts a put or a take; system calls without a
// result that matters. Failure: what the kernel does not unmap stays mapped, and unused.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "session/books/block_words.h"

// Cut the region. `tiny_below` says whether blocks need tiny words (enum words_tiny_below); NULL:
// they do.
void region_cut(struct words_region *region, const _Atomic uint32_t *tiny_below);
