// SPDX-License-Identifier: MIT
// passing_operators: operator new and delete for --sample, where the next definitions only call
// malloc and free (real_functions.h, operators_are_plain).
//
// A block that is not chosen does not need them: it is counted here. For all others they are jumped
// to, so that they are in the recorded stacks as ever. Context: T.
#pragma once

#include <stddef.h>

#include "target/preload/real/hooked_functions.h"

#define X(name, parameters, arguments, alignment, throws) \
    void *passing_##name parameters __attribute__((visibility("hidden")));
PLAIN_NEW_OPERATORS(X)
#undef X
#define X(name, parameters, arguments) \
    void passing_##name parameters __attribute__((visibility("hidden")));
PLAIN_DELETE_OPERATORS(X)
#undef X
