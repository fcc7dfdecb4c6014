// SPDX-License-Identifier: MIT
// drawn_profile: a recording drawn as text (recording_text.h), opened as a profile.
//
// Context: tests only, after cmocka.h.
#pragma once

#include "profile/model/profile.h"
#include "profile/select/filter.h"
#include "recording/test_support/recording_text.h"

struct drawn_profile {
    struct recording recording;
    struct profile *profile;
    struct selection selection;
};

static inline void drawn_profile_release(struct drawn_profile *drawn)
{
    selection_release(&drawn->selection);
    profile_close(drawn->profile);
    recording_release(&drawn->recording);
}

// Open the drawing `text` as a finished recording with everything selected. Fail the test if that
// does not work.
static inline void drawn_profile_open(const char *text, struct drawn_profile *out)
{
    struct err_info info = {0};
    enum err problem = recording_from_text(text, &out->recording, &info);
    if (problem == ERR_OK) {
        out->recording.meta.state = REC_STATE_FINISHED;
        problem = profile_from_recording(&out->recording, NULL, NULL, &out->profile, &info);
    }
    if (problem != ERR_OK || profile_select(out->profile, NULL, &out->selection, &info) != ERR_OK) {
        fail_msg("%s in:\n%s", info.text, text);
    }
}
