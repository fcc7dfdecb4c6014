// SPDX-License-Identifier: MIT
// history_unfold: puts back what history_fold left out, once all tables of a snapshot are read.
//
// Where something is missing of what an entry follows from, the entry is left out and not guessed:
// a table then ends before the first row of which not all is known.
// Context: H; one thread at a time.
#pragma once

#include "recording/table_reader.h"

// Completes the tables of the history. ERR_NO_MEMORY; ERR_LIMIT: they are longer than the budget
// allows, and empty now.
enum err history_unfold(struct table_reader *r) MUST_USE;

// Empties them.
void history_forget(struct table_reader *r);
