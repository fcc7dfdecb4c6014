// SPDX-License-Identifier: MIT
// address_range: a part of an address space, from `start` up to, but not including, `end`.
//
// Context: H.
#pragma once

#include <stdint.h>

#include "host/containers/vec.h"

struct address_range {
    uint64_t start;
    uint64_t end;
};

DEFINE_VEC(address_range_vec, struct address_range);
