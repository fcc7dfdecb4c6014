// SPDX-License-Identifier: MIT
// spelling: how far a mistyped word is from a known one.
//
// Context: H; pure.
#pragma once

enum {
    SPELLING_LEN_MAX = 31,     // longer words are not compared
    SPELLING_DISTANCE_MAX = 2, // edits between a word and one that is suggested for it
};

// Return the optimal string alignment distance: insertions, deletions, changes and swapped
// neighbours. SPELLING_DISTANCE_MAX + 1 if a word is too long, or too short to mean another one.
unsigned spelling_distance(const char *typed, const char *known);
