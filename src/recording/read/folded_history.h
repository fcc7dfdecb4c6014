// SPDX-License-Identifier: MIT
// folded_history: the history of rows as recordings of 2026 hold it, in the form of every other.
//
// Those recordings leave out what follows from the rows (format, 5.23). This puts it back, once all
// tables of a snapshot are read. If a chunk of any of these tables is missing, the whole history is
// dropped: what remains would be taken for all of it.
// Context: H; one thread at a time.
#pragma once

#include "recording/read/table_reader.h"

// Restores the history, if it is folded. ERR_NO_MEMORY; ERR_LIMIT: it is larger than the budget
// allows. After a failure it is empty.
enum err folded_history_restore(struct table_reader *r) MUST_USE;

// Empties the tables of the history.
void history_drop(struct table_reader *r);
