// SPDX-License-Identifier: MIT
// memory_end: whether memory ended while this thread made an answer.
//
// An answer, such as a report, a view or an exported file, adds thousands of items and texts, and
// is worth nothing if one of them is missing. So functions that add, by strbuf or by _add of a
// vector (vec.h), fail in silence. The maker of the answer asks once, at its end, and abandons it:
//
//   memory_end_forget();
//   write_report(...);          // void: it adds and prints
//   TRY(memory_end_result());
//
// Each failed growth of a vector or a string is noted, also one that its caller has dealt with.
// Context: H; of the calling thread.
#pragma once

#include "base/err.h"

// Begin an answer.
void memory_end_forget(void);

// ERR_NO_MEMORY if memory has ended since, ERR_LIMIT if a table has become too large.
enum err memory_end_result(void) MUST_USE;

// For vec.c, strbuf.c and string_table.c.
void memory_end_note(enum err err);
