// SPDX-License-Identifier: MIT
// csv_cell: cells of a table for spreadsheets and scripts, in the form of RFC 4180.
//
// The caller writes the commas between cells, and CSV_LINE_END after each line. Text that a
// spreadsheet could take for a formula (it begins with = + - or @) gets an apostrophe before it.
// Control characters become spaces, so each line of the file is a row. Output errors stay in the
// stream. Context: H.
#pragma once

#include <stdio.h>

#define CSV_LINE_END "\r\n"

// Write a text as one cell, quoted if needed.
void csv_write_text(FILE *out, const char *text);
