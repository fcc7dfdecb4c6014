// SPDX-License-Identifier: MIT
// lsan_rules: read the LeakSanitizer rules of a program from its file.
//
//   const char *__lsan_default_suppressions(void) { return "leak:...\n"; }
//
// cairn does not call this function, because it is code of the recorded program. Compilers turn
// such a function into one that loads one address and returns; the address is constant data in the
// same file. This module recognizes that code and reads the data. A function that does more gives
// no rules. The file is hostile: every address is looked up in its segments. Context: H.
#pragma once

#include "base/err.h"
#include "host/text/strbuf.h"
#include "symbols/elf/elf_file.h"

enum {
    LSAN_RULES_MAX_BYTES = 1 << 16
};

// Append the text and a line feed. A file without such a function, or with an empty text, gives
// ERR_OK. ERR_NO_MEMORY.
enum err lsan_rules_read(const struct elf_file *file, struct strbuf *out) MUST_USE;
