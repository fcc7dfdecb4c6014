// SPDX-License-Identifier: MIT
// wrapper_frames: tables of names and the function that searches them. See wrapper_frames.h.
#include "profile/model/wrapper_frames.h"

#include <string.h>

#include "base/compiler.h"
#include "profile/model/function_name.h"

// Whole names of C functions: libc's, GLib's, and names that many programs give to wrappers.
static const char *const c_functions[] = {
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "__libc_malloc",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_memalign",
    "strdup",
    "__strdup",
    "__GI___strdup",
    "__GI___strndup",
    "strndup",
    "__strndup",
    "wcsdup",
    "__wcsdup",
    "xmalloc",
    "xcalloc",
    "xrealloc",
    "xreallocarray",
    "xnmalloc",
    "xnrealloc",
    "xzalloc",
    "x2realloc",
    "x2nrealloc",
    "xmemdup",
    "xstrdup",
    "xstrndup",
    "g_malloc",
    "g_malloc0",
    "g_malloc_n",
    "g_malloc0_n",
    "g_realloc",
    "g_realloc_n",
    "g_try_malloc",
    "g_try_malloc0",
    "g_try_malloc_n",
    "g_try_realloc",
    "g_slice_alloc",
    "g_slice_alloc0",
    "g_slice_copy",
    "g_strdup",
    "g_strndup",
    "g_memdup",
    "g_memdup2",
    "g_aligned_alloc",
    "cairn_report_alloc",
    "cairn_report_realloc",
};

// Prefixes of qualified names.
static const char *const prefixes[] = {
    "operator new",  // all forms
    "std::",         // C++: containers, strings, smart pointers, allocators
    "__gnu_cxx::",   // libstdc++'s allocators
    "__gnu_debug::", // its checked containers
    "__rust_alloc",  // Rust: from the language's hooks ...
    "__rust_realloc",
    "__rdl_",
    "__rg_",
    "__rustc::__r",
    "alloc::alloc::", // ... to the containers
    "alloc::raw_vec::",
    "<alloc::alloc::",
    "<alloc::raw_vec::",
};

// Parts of source paths of the Rust library, in rustup's builds and in distributions' builds.
static const char *const file_parts[] = {
    "/library/alloc/src/",
    "/library/core/src/",
    "/library/std/src/",
};

bool is_wrapper_frame(const char *function, const char *file)
{
    for (size_t i = 0; i < ARRAY_LEN(file_parts); i++) {
        if (strstr(file, file_parts[i]) != NULL) {
            return true;
        }
    }
    const char *qualified = function + name_split(function).qualified_at;
    // The first letter alone is a fast check: few names share one, and thousands are checked.
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (qualified[0] == prefixes[i][0] &&
            strncmp(qualified, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(c_functions); i++) {
        if (qualified[0] == c_functions[i][0] && strcmp(qualified, c_functions[i]) == 0) {
            return true;
        }
    }
    return false;
}
