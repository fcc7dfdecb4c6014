// SPDX-License-Identifier: MIT
// output_name: what a recording's file is called.
//
// In the word after -o, %p stands for the program's pid, %h for the host's name, %% for %; any
// other use of % is a mistake. Without -o it is "cairn.<program>.%p.cairn" in the current
// directory, the program being the last part of its path, and not longer than file names may be. Of
// ASCII only letters, digits and ._+- stay as they are; other characters do if they can be seen.
// Everything else becomes _. Context: H;
// pure.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"

// The pattern for a program when the user gave none.
void output_name_append_default(struct strbuf *out, const char *program);

// ERR_INVALID with a sentence for a pattern that makes no sense.
enum err output_name_expand(const char *pattern,
                            uint32_t pid,
                            const char *host,
                            struct strbuf *out,
                            struct err_info *info) MUST_USE;
