// SPDX-License-Identifier: MIT
// strip_arch, for tests that read AArch64 files elsewhere: imaginary return addresses are not
// signed.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

ALWAYS_INLINE uint64_t arch_strip(uint64_t ret_addr)
{
    return ret_addr;
}
