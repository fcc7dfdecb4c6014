// SPDX-License-Identifier: MIT
// package_owner: which packages of the system the files belong to, as dpkg or rpm say.
//
// They are run without a shell, with an empty stdin, for at most two seconds; what they say is cut
// after 64 KiB and taken as words alone. Paths are patterns for dpkg, so one that could be more
// than itself is not asked for. Context: H; the main thread. Nobody's file, no such tool, or one
// that hangs: there is no name, which is no failure.
#pragma once

#include <stddef.h>

#include "base/err.h"

enum {
    PACKAGE_NAME_BYTES = 128
};

enum package_system {
    PACKAGE_NONE, // nobody knows the file
    PACKAGE_DPKG,
    PACKAGE_RPM,
};

struct package_owner {
    enum package_system system;
    char name[PACKAGE_NAME_BYTES];
};

// Fills owners[0..count), of the files paths[0..count). ERR_NO_MEMORY.
enum err package_owners_find(const char *const *paths, size_t count, struct package_owner *owners)
    MUST_USE;
