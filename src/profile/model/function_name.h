// SPDX-License-Identifier: MIT
// function_name: the parts of a demangled name, and shorter forms of it.
//
//   std::vector<int> app::load<char>(std::string const&, int) const
//   \______________/ \_______/\____/\_______________________________/
//    return type      qualified  template arguments   parameters and qualifiers
//
// C, C++, Rust and D names are split by brackets alone, so nothing here fails. A name without the
// brackets of a signature is its own qualified name, and nothing is removed from it. Examples: a
// perf map's "LazyCompile:*f /a.js:1", Go's "main.(*T).run", "<script>alert(1)</script>".
// Names are hostile: unbalanced brackets, megabytes.
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/text/strbuf.h"

struct name_parts {
    size_t qualified_at;  // start of the qualified name, after the return type
    size_t parameters_at; // the parameter list's "(", or the length without one
    size_t len;           // of the whole name
};

struct name_parts name_split(const char *name);

enum name_form {
    NAME_WHOLE,
    NAME_NO_RETURN_TYPE, // app::load<char>(std::string const&, int) const
    NAME_NO_PARAMETERS,  // app::load<char>
    NAME_NO_TEMPLATES,   // app::(anonymous namespace)::load; every <...> is removed
    NAME_NO_ANONYMOUS,   // app::load; the namespaces without a name, too
    NAME_FORM_COUNT,
};

// Append `name` in that form. Each form is at most as long as the one before it.
void name_append(struct strbuf *out, const char *name, enum name_form form);

// Append a name in its shortest form for a sentence, which must be readable: the middle of a
// long name is omitted. names/distinct_name.h tells it from others with that form.
void name_append_in_sentence(struct strbuf *out, const char *name);

// Append a text; of one with more than `most` bytes, a half of them from each end.
void name_append_cut(struct strbuf *out, const char *text, size_t most);

// The length of `name` without the suffixes of a compiler's clones: "work() [clone .part.0]",
// "work.constprop.0", "work.cold". The same source has other clones in every build.
size_t name_len_without_clones(const char *name);

// Whether the name is that of a wrapper frame (wrappers.h). `function` is the demangled name,
// `file` the source file or "". Neither is NULL.
bool is_wrapper_frame(const char *function, const char *file);

// The length of the folder of the library in the path of a source file, as a package manager or
// the system keeps it: "/root/.cargo/registry/src/index.crates.io-6f17d22bba15001f/regex-1.7.1/".
// 0: the file is not in one. C++'s own headers are not either: is_wrapper_frame judges their names.
size_t library_folder_len(const char *file);
