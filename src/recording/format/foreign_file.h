// SPDX-License-Identifier: MIT
// foreign_file: what a file that is no recording seems to be, for a helpful refusal.
//
// Looks at the first bytes. Guesses only; nothing depends on it but a sentence. Context: H.
#pragma once

#include "base/bytes.h"

enum foreign_kind {
    FOREIGN_UNKNOWN,
    FOREIGN_COMPRESSED, // gzip or zstd, of something unknown
    FOREIGN_ELF,
    FOREIGN_TEXT_MODE, // a recording that went through a text-mode transfer
};

// `head` are the file's first bytes; 16 are enough.
enum foreign_kind foreign_file_kind(struct bytes head);
