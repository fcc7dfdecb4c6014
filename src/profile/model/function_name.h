// SPDX-License-Identifier: MIT
// function_name: the parts of a demangled name, and shorter forms of it.
//
//   std::vector<int> app::load<char>(std::string const&, int) const
//   \______________/ \_______/\____/\_______________________________/
//    return type      qualified  template arguments   parameters and qualifiers
//
// C, C++, Rust and D names are told apart by brackets alone: nothing here fails. A name whose
// brackets are not those of a signature (a perf map's "LazyCompile:*f /a.js:1", Go's
// "main.(*T).run", "<script>alert(1)</script>") is its own qualified name, of which nothing is cut.
// Names are hostile: unbalanced brackets, megabytes.
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/text/strbuf.h"

struct name_parts {
    size_t qualified_at;  // where the qualified name begins: after the return type
    size_t parameters_at; // where the parameter list's "(" lies, or the length if there is none
    size_t len;           // of the whole name
};

struct name_parts name_split(const char *name);

enum name_form {
    NAME_WHOLE,
    NAME_NO_RETURN_TYPE, // app::load<char>(std::string const&, int) const
    NAME_NO_PARAMETERS,  // app::load<char>
    NAME_NO_TEMPLATES,   // app::load, what stood in <> is gone wherever it stood
    NAME_FORM_COUNT,
};

// Appends `name` in that form; each form is at most as long as the one before it.
void name_append(struct strbuf *out, const char *name, enum name_form form);

// The length of `name` without what compilers append to the copies that they make of a function:
// "work() [clone .part.0]", "work.constprop.0", "work.cold". The same source gives other copies in
// every build.
size_t name_len_without_clones(const char *name);
