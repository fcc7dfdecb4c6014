// SPDX-License-Identifier: MIT
// test_recording: a small recording with one of everything, and assertions for recordings.
//
// Context: tests only, after cmocka.h.
#pragma once

#include "base/err.h"

// In the form of recording_text.h: two threads, an inlined frame, series, histograms and cohorts.
static const char test_recording_text[] =
    "thread main\n"
    "app!main(app.c:12);libx.so!load(x.c:3)=>grow(v.h:9) 10 640 4 256\n"
    "  @0 4 256\n"
    "  @3 6 384 4 256\n"
    "  size 14 10 640\n"
    "  cohort 0 3 4 256\n"
    "thread worker\n"
    "app!main(app.c:12);app!work 3 30 3 30 3 30\n"
    "  @1 3 30 3 30 3\n"
    "  size 9 3 30\n"
    "  life 1 3 30\n";

static inline void must(enum err err, const struct err_info *info)
{
    if (err != ERR_OK) {
        fail_msg("%s: %s", err_name(err), info->text);
    }
}
