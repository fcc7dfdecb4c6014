// SPDX-License-Identifier: MIT
// own_memory: the private memory of this process, as the kernel counts it.
//
// proc(5), statm: resident pages minus the shared ones, which belong to the session and to files.
// One read of a file that stays open takes some microseconds.
// Context: H.
#pragma once

#include <stdint.h>

// Open a descriptor for own_memory_bytes. Return -1 without /proc.
int own_memory_open(void);

// Return the bytes; 0 if they are unknown.
uint64_t own_memory_bytes(int fd);
