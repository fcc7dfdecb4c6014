// SPDX-License-Identifier: MIT
// symbol_name: from mangled names to names that people know: C++, Rust (both manglings) and D.
//
// The demangler is libiberty's. A mangled name may refer back to its own parts, so that a few
// hundred bytes can stand for gigabytes: the output is taken piece by piece and given up after
// SYMBOL_NAME_MAX bytes, and the recursion limit of the library stays on. D's demangler has no
// piecewise form; there the back references are counted first. A name that cannot be demangled
// within the bounds stays as it is, cut to the same length. What the compiler adds to copies of a
// function stays visible: C++ shows "[clone .part.0]". The hash at the end of a Rust name is
// dropped. Context: H; not from signal handlers (a too long result is left by longjmp).
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "host/text/strbuf.h"

enum {
    SYMBOL_NAME_MAX = 64 * 1024
};

// Replaces the content of `out` by the readable form of `mangled`. ERR_NO_MEMORY only.
enum err symbol_name_demangle(const char *mangled, struct strbuf *out) MUST_USE;
