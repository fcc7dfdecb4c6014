// SPDX-License-Identifier: MIT
// lsan_rules: the rules for LeakSanitizer that a program holds, read from its file.
//
//   const char *__lsan_default_suppressions(void) { return "leak:...\n"; }
//
// The function is not called: it belongs to somebody else's program. What compilers make of such a
// function loads one address and returns, and the address is that of constant data in the same
// file; this is recognized and read. A function that does anything more gives no rules. The file is
// hostile: every address is looked up in its segments. Context: H.
#pragma once

#include "base/err.h"
#include "host/text/strbuf.h"
#include "symbols/elf/elf_file.h"

enum {
    LSAN_RULES_MAX_BYTES = 1 << 16
};

// Appends the text, with a line feed behind it. Nothing to append is success, as is a file without
// such a function. ERR_NO_MEMORY.
enum err lsan_rules_read(const struct elf_file *file, struct strbuf *out) MUST_USE;
