// SPDX-License-Identifier: MIT
// test_sample: a sample of a recording that is drawn as text (recording_text.h).
//
// Context: tests only, after cmocka.h.
#pragma once

#include "cli/top/top_sample.h"
#include "recording/test_support/recording_text.h"

// Return the sample of a recording that has lasted time_ms, owned by the caller. Fail the test if
// that does not work.
static inline struct top_sample *test_sample(const char *text, uint64_t time_ms)
{
    struct recording recording = {0};
    struct recording_open_result result = {0};
    struct err_info info = {0};
    struct profile *profile = NULL;
    struct top_sample *sample = NULL;
    enum err problem = recording_from_text(text, &recording, &info);
    if (problem == ERR_OK) {
        recording.meta.state = REC_STATE_FINISHED;
        recording.meta.runtime_ms = time_ms;
        problem = profile_take_recording(&recording, &result, NULL, NULL, &profile, &info);
    }
    if (problem != ERR_OK || top_sample_take(profile, &sample) != ERR_OK) {
        fail_msg("%s in:\n%s", info.text, text);
    }
    return sample;
}
