// SPDX-License-Identifier: MIT
// mark_list: the moments on the time line, from whoever set them: people, the recorder, the
// program.
//
// In the order of time; of one time in the order in which they came. The program's own arrive when
// its events are counted, a little later than those of people, and are put where they belong.
// Bounded: MARKS_MAX; what comes after is refused. Context: H, the recorder's main thread.
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"
#include "session/wire.h"

DEFINE_VEC(rec_mark_vec, struct rec_mark);

#define MARKS_MAX           10000u
#define MARK_TEXT_BYTES_MAX WIRE_MARK_BYTES_MAX // whoever sets it

struct mark_list {
    struct rec_mark_vec marks; // owned
    uint64_t refused;          // of the program
};

void mark_list_release(struct mark_list *list); // accepts a zeroed one

// Adds a mark at `time_ms`; of `text` what fits MARK_TEXT_BYTES_MAX is kept. ERR_LIMIT: there are
// too many; ERR_NO_MEMORY.
enum err mark_list_add(struct mark_list *list,
                       struct string_table *strings,
                       uint64_t time_ms,
                       enum rec_mark_kind kind,
                       struct bytes text) MUST_USE;

// A mark of the program's: one too many is counted, and no error.
enum err mark_list_add_of_program(struct mark_list *list,
                                  struct string_table *strings,
                                  uint64_t time_ms,
                                  enum rec_mark_kind kind,
                                  struct bytes text) MUST_USE;
