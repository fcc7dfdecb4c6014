// SPDX-License-Identifier: MIT
// foreign_file: guess the kind of a file that is not a recording, for a helpful refusal.
//
// It reads the first bytes only. A wrong guess affects nothing but the message. Context: H.
#pragma once

#include "base/bytes.h"

enum foreign_kind {
    FOREIGN_UNKNOWN,
    FOREIGN_COMPRESSED, // gzip or zstd with unknown content
    FOREIGN_ELF,
    FOREIGN_TEXT_MODE, // a recording after a text-mode transfer
};

// Guess the kind. `head` holds the first bytes of the file; 16 are enough.
enum foreign_kind foreign_file_kind(struct bytes head);
