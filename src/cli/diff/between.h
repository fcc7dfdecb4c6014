// SPDX-License-Identifier: MIT
// between: the two moments or ranges of one recording that `cairn diff FILE --between` compares.
//
//   --between warm done          the heap at the mark "warm", and at the mark "done"
//   --between 2s 1m              the same by times
//   --between load..warm 1m..2m  what happened in one range, and in another
//
// A moment is the part of the run up to it, so its live blocks are those of the moment. A mark is
// named by its text; where several have one text, text#2 is the second. Context: H. Failure: a
// sentence.
#pragma once

#include "cli/options/filter_options.h"
#include "profile/model/profile.h"

struct between {
    const char *parts[SIDE_COUNT]; // as typed; NULL: nothing of the kind was asked for
};

// Restrict `words` to the part of the recording that was typed.
enum err between_apply(const char *part,
                       const struct profile *profile,
                       struct filter_words *words,
                       struct err_info *info) MUST_USE;

// Whether both parts are moments: only what is live then can be compared.
bool between_is_of_moments(const struct between *between);
