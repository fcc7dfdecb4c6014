// SPDX-License-Identifier: MIT
// renames: functions that have another name in the new recording.
//
//   old: main -> parse_row   1,000 calls, 50,000 bytes        renamed:
//   new: main -> parse_line  1,000 calls, 50,000 bytes        parse_row is parse_line
//
// A function of the old recording that the new one lacks, and one that only the new one has, are
// the same if their callers are, and made them allocate as often and as many bytes in all: below
// each caller, with what they call. No third function may fit as well. The union then has one id
// for both, so that their stacks match. A renamed caller is found before what it calls.
// Estimates are never compared. Context: H. ERR_NO_MEMORY.
#pragma once

#include "base/err.h"
#include "profile/model/code_union.h"

// Find the renamed functions of both recordings, and unite them in `code`.
enum err renames_find(struct code_union *code) MUST_USE;
