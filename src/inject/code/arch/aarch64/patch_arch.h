// SPDX-License-Identifier: MIT
// patch_arch: the sizes of patches for AArch64. A patch is one `b`.
#pragma once

#define PATCH_BYTES 4

#define STUB_BYTES       24 // movz, movk w17; ldr x16; br x16; the address
#define TRAMPOLINE_BYTES 40
