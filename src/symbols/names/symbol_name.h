// SPDX-License-Identifier: MIT
// symbol_name: demangle names of C++, Rust (both manglings) and D.
//
// The demangler is libiberty's. A mangled name may refer back to its own parts, so a few hundred
// bytes can expand to gigabytes. The output is therefore taken piece by piece and abandoned after
// 1 MiB, and the library's recursion limit stays on. Of a name with more than SYMBOL_NAME_MAX bytes
// the inner template arguments become "<...>". D's demangler has no piecewise form; there this
// module counts the back references first. A name that cannot be demangled within the bounds stays
// mangled, truncated to SYMBOL_NAME_MAX bytes. The suffixes of the compiler's copies of
// a function stay visible: C++ shows "[clone .part.0]". The hash at the end of a Rust name is
// removed.
// Context: H; not from signal handlers (longjmp leaves the demangler when the result is too long).
#pragma once

#include "base/err.h"
#include "host/text/strbuf.h"

enum {
    SYMBOL_NAME_MAX = 64 * 1024
};

// Replace the content of `out` by the readable form of `mangled`. ERR_NO_MEMORY only.
enum err symbol_name_demangle(const char *mangled, struct strbuf *out) MUST_USE;
