// SPDX-License-Identifier: MIT
// given_rows: gives numbers of rows that nothing uses any more back to their process, in the list
// from which its threads take them (session/books/free_rows.h).
//
// A process whose list cannot be mapped takes new numbers as long as there are some.
// Owns: a mapping of the list. Context: H, the recorder's main thread. Zeroed is valid.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/containers/vec.h"
#include "recorder/session/session_create.h"
#include "session/books/free_rows.h"

struct given_rows {
    struct free_rows *list; // owned; NULL: not mapped (yet)
    bool is_refused;        // it cannot be mapped
};

// Give back numbers of the process, which has that number in the words.
void given_rows_add(struct given_rows *given,
                    const struct session *session,
                    uint32_t process,
                    const struct u32_vec *numbers);

// The process has ended.
void given_rows_release(struct given_rows *given);
