// SPDX-License-Identifier: MIT
// row_numbers: numbers for the rows of this process (block_words.h).
//
// A thread that gives a stack a row takes a number that the recorder has given back
// (session/books/free_rows.h), and only without one a number that was never used. So the highest
// number follows how many stacks have rows or live blocks at one time, not how long the process
// runs. docs/design/words.md has the rule when a number is given back.
//
// Failure: 0, there is no number. Context: T, any thread; async-signal-safe, no lock.
#pragma once

#include <stdint.h>

#include "target/producer/words/process_words.h"

// Return a number of a row whose blocks are chosen at that level; 0: there are no more.
uint32_t row_numbers_take(struct process_words *words, uint32_t level);
