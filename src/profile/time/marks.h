// SPDX-License-Identifier: MIT
// marks: the times of a recording that have a vertical line in the time line.
//
// Context: H.
#pragma once

#include <stdint.h>

#include "profile/model/profile.h"

// "mark", "start", "stop" or "phase".
const char *mark_kind_name(uint32_t kind);

// How long recording was paused, until the end of the run.
uint64_t marks_stopped_ms(const struct recording *recording);
