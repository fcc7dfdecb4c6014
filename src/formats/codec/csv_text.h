// SPDX-License-Identifier: MIT
// csv_text: one field of a CSV file (RFC 4180).
//
// A field is quoted if it has a comma or a quote. Text that a spreadsheet may take for a formula
// (it begins with = + - or @) gets an apostrophe before it. Context: H.
#pragma once

#include <stdio.h>

// Write a field. `text` is on one line (clean_text.h).
void csv_write_text(FILE *out, const char *text);
