// SPDX-License-Identifier: MIT
// words_memory: how much memory the words of all programs take (session/books/block_words.h).
//
// The kernel counts the pages of the session's file. Those of the lanes are subtracted: they are
// looked up in each lane that is in use. The header and the slots count as words. One reading costs
// a system call, and one for each lane if there may be so many words that it matters; so it is
// taken every 8 ms, and never for more than a 32nd of a processor.
//
// Trust: a program that clears the bits of its lanes makes the recorder choose blocks too early.
// Context: H, the recorder's main thread.
#pragma once

#include <stdint.h>

#include "recorder/session/session_create.h"

// Zeroed: not read yet.
struct words_memory {
    uint64_t bytes;       // at the latest reading
    uint64_t lanes_bytes; // of lanes, if that reading has told them apart, else 0
    uint64_t next_ns;     // when the next one is due
};

// Return the bytes of words at the latest reading, which is taken now if it is due. Below
// `from_bytes` they may include lanes.
uint64_t words_memory_bytes(struct words_memory *memory,
                            const struct session *session,
                            uint64_t from_bytes,
                            uint64_t now_ns);
