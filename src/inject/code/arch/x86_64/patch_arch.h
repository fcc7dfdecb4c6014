// SPDX-License-Identifier: MIT
// patch_arch: the sizes of patches for x86-64. A patch is `jmp rel32`.
#pragma once

#define PATCH_BYTES 5

#define STUB_BYTES       32 // push imm32, or lea; jmp *0(%rip); the address; the nothrow form's
#define TRAMPOLINE_BYTES 32
