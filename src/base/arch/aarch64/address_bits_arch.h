// SPDX-License-Identifier: MIT
// address_bits_arch (AArch64): the bits of a program's addresses, if it has not asked the kernel
// for higher ones. Context: T and H.
#pragma once

#define ADDRESS_BITS_ARCH 48
