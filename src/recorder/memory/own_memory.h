// SPDX-License-Identifier: MIT
// own_memory: how much memory this process has to itself, as the kernel counts it.
//
// proc(5), statm: resident pages less the shared ones, which are the session's and those of files.
// One read of a file that stays open, some microseconds. Context: H.
#pragma once

#include <stdint.h>

// A descriptor for own_memory_bytes, or -1 where there is no /proc.
int own_memory_open(void);

// In bytes; 0 if it cannot be told.
uint64_t own_memory_bytes(int fd);
