// SPDX-License-Identifier: MIT
// push_limits: what a collector takes of a profile. Context: H.
#pragma once

#include <stdint.h>

struct push_limits {
    uint64_t samples; // at least 2
    uint64_t bytes;   // unpacked
};
