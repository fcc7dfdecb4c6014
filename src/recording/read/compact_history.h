// SPDX-License-Identifier: MIT
// compact_history: restore the history of rows of recordings of 2026.
//
// Those recordings omit the entries that follow from the rows (format, 5.23). Once all tables of a
// snapshot are read, this module restores them. If a chunk of any of these tables is missing, it
// drops the whole history, because a partial one would pass for complete.
// Context: H; one thread at a time.
#pragma once

#include "recording/read/table_reader.h"

// Restore the history if it is compact. ERR_NO_MEMORY; ERR_LIMIT if it is larger than the budget.
// After a failure the history is empty.
enum err compact_history_restore(struct table_reader *r) MUST_USE;

// Empty the tables of the history.
void history_drop(struct table_reader *r);
