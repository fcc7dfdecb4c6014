// SPDX-License-Identifier: MIT
// record_follow: `cairn record --name NAME --follow`: records a program whenever it runs.
//
//   look for NAME --found--> recorder (a process) --all have ended--> look for NAME ...
//        ^ '--found meanwhile--> the same recorder also attaches to it
//        '-- a few times a second
//
// Each recorder is a process of its own, so a week of recordings takes no more memory than one, and
// a failure ends one recording only. Each process is tried once. What ends between two looks is not
// seen, and a process that ends before it is attached to is named on stderr.
// Ctrl-C, SIGTERM, SIGHUP or the end of --duration end the recording and the command.
// Context: H; one thread. Prints on stderr.
#pragma once

#include "cli/options/options.h"
#include "cli/record/record_run.h"

// Record what `names`, the uses of --name, mean until the user stops it. The duration in `settings`
// is that of all recordings. Return the exit status: 2 if the output cannot be written or, with
// is_strict, if any recording has failed; otherwise 0.
int record_follow(const struct record_settings *settings, const struct option_word_vec *names);
