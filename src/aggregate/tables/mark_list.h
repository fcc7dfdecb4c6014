// SPDX-License-Identifier: MIT
// mark_list: the marks on the time line, set by users, the recorder or the program.
//
// Marks are ordered by time, and by arrival at one time. Marks of the program arrive when its
// events are counted, a little later than those of users, and are inserted in order.
// Bounded: MARKS_MAX; further marks are refused.
// Context: H, the recorder's main thread.
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
#define MARK_TEXT_BYTES_MAX WIRE_MARK_BYTES_MAX // for marks of any origin

struct mark_list {
    struct rec_mark_vec marks; // owned
    uint64_t refused;          // of the program
};

void mark_list_release(struct mark_list *list); // accepts a zeroed one

// Add a mark at `time_ms`. `text` is truncated to MARK_TEXT_BYTES_MAX. ERR_LIMIT: there are too
// many marks; ERR_NO_MEMORY.
enum err mark_list_add(struct mark_list *list,
                       struct string_table *strings,
                       uint64_t time_ms,
                       enum rec_mark_kind kind,
                       struct bytes text) MUST_USE;

// Add a mark of the program. A mark beyond MARKS_MAX is counted and is not an error.
enum err mark_list_add_of_program(struct mark_list *list,
                                  struct string_table *strings,
                                  uint64_t time_ms,
                                  enum rec_mark_kind kind,
                                  struct bytes text) MUST_USE;
