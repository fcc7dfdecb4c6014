// SPDX-License-Identifier: MIT
// package_owner: finds the packages of the system that files belong to, with dpkg or rpm.
//
// The tools run without a shell, with an empty stdin, for at most two seconds; one that works then,
// or lacks a processor, for at most twenty. Their output is truncated at 64 KiB, and only its words
// are used. dpkg reads a path as a pattern, so a path with pattern characters is skipped. Context:
// H; the main thread. A file without a package, a missing tool and a tool that hangs give no name,
// which is not an error.
#pragma once

#include <stddef.h>

#include "base/err.h"

enum {
    PACKAGE_NAME_BYTES = 128
};

enum package_system {
    PACKAGE_NONE, // the file has no known package
    PACKAGE_DPKG,
    PACKAGE_RPM,
};

struct package_owner {
    enum package_system system;
    char name[PACKAGE_NAME_BYTES];
};

// Fill owners[0..count) for the files paths[0..count). Return ERR_NO_MEMORY on failure.
enum err package_owners_find(const char *const *paths, size_t count, struct package_owner *owners)
    MUST_USE;
