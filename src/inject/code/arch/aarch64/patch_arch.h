// SPDX-License-Identifier: MIT
// patch_arch: the sizes of patches for AArch64. A patch is one `b`.
#pragma once

#define PATCH_BYTES 4

#define STUB_BYTES       32 // autiasp or nop; movz, movk w17; ldr x16; br x16; nop; the address
#define TRAMPOLINE_BYTES 40
