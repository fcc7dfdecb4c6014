// SPDX-License-Identifier: MIT
// completion: what can follow the words of an unfinished command line, for shells.
//
// The shells' scripts (completion/) run `cairn --complete WORDS...`, in which the last word is the
// one that is typed, perhaps empty. The answer comes from the tables of commands and options, so it
// needs no other list. Each line is a word, a tab and its description, or one of
//
//   :files  :directories  :programs    what the shell finds
//
// Context: H; pure, except for the output and the names of the processes that run.
#pragma once

#include <stdio.h>

// Write the answer for words[0..count). The caller checks the stream.
void completion_write(int count, char *const *words, FILE *out);
