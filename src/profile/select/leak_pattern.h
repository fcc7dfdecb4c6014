// SPDX-License-Identifier: MIT
// leak_pattern: the patterns of rules for leaks, as LeakSanitizer has them.
//
//   name      contains it        ^name    begins with it
//   name$     ends with it       a*b      * stands for any text
//
// Context: H, pure.
#pragma once

#include <stdbool.h>

// Whether a pattern, without its "leak:", matches a name.
bool leak_pattern_matches(const char *pattern, const char *name);
