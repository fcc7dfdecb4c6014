// SPDX-License-Identifier: MIT
// marks: the moments of a recording that have a line of their own on the time line.
//
// Context: H.
#pragma once

#include <stdint.h>

#include "profile/model/profile.h"

// "mark", "start", "stop" or "phase".
const char *mark_kind_name(uint32_t kind);

// For how long nothing was recorded, until the end of the run.
uint64_t marks_stopped_ms(const struct recording *recording);
