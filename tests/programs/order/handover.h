// SPDX-License-Identifier: MIT
// handover: the size of the blocks that libhandover_allocator.so has one address for, and what it
// calls in a realloc of such a block after the address is free again.
#pragma once

#define HANDOVER_BYTES 4000

void handover_moved(void) __attribute__((weak));
