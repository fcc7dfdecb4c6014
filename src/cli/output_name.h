// SPDX-License-Identifier: MIT
// output_name: what a recording's file is called.
//
// In the word after -o, %p stands for the program's pid, %h for the host's name, %% for %; any
// other use of % is a mistake. Without -o it is "cairn.<program>.%p.cairn" in the current
// directory, the program being the last part of its path, with every character that is not a
// letter, a digit or one of ._+- turned into _, and not longer than file names may be. Context: H;
// pure.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/strbuf.h"

// The pattern for a program when the user gave none.
void output_name_append_default(struct strbuf *out, const char *program);

// ERR_INVALID with a sentence for a pattern that makes no sense.
enum err output_name_expand(const char *pattern,
                            uint32_t pid,
                            const char *host,
                            struct strbuf *out,
                            struct err_info *info) MUST_USE;
