// SPDX-License-Identifier: MIT
// pprof_fields: the field numbers of pprof's message Profile, for its reader and its writer
// (profile.proto of github.com/google/pprof).
#pragma once

enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME_NS = 9,
    PROFILE_DURATION_NS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
    PROFILE_FIELD_MAX = 15, // doc_url, unused
};
