// SPDX-License-Identifier: MIT
// test_sample: a sample of a recording that is drawn as text (recording_text.h).
//
// Context: tests only, after cmocka.h.
#pragma once

#include "cli/top/top_sample.h"
#include "recording/test_support/recording_text.h"

// Return the sample of a recording that has lasted time_ms and was made with --sample=sample_bytes,
// or without, if that is 0. The caller owns it. Fail the test if that does not work.
static inline struct top_sample *
test_sampled(const char *text, uint64_t time_ms, uint64_t sample_bytes)
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
        recording.totals.peak_time_ms = time_ms; // in the last slice
        recording.totals.sample_bytes = sample_bytes;
        recording.totals.unsampled_allocations = sample_bytes > 0 ? 9000 : 0;
        recording.totals.peak_error_bytes = sample_bytes > 0 ? 100000 : 0;
        problem = profile_take_recording(&recording, &result, NULL, NULL, &profile, &info);
    }
    if (problem != ERR_OK || top_sample_take(profile, &sample) != ERR_OK) {
        fail_msg("%s in:\n%s", info.text, text);
    }
    return sample;
}

static inline struct top_sample *test_sample(const char *text, uint64_t time_ms)
{
    return test_sampled(text, time_ms, 0);
}
