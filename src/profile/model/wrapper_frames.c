// SPDX-License-Identifier: MIT
// wrapper_frames: the tables of names of wrappers. See wrappers.h.

#include <string.h>

#include "base/compiler.h"
#include "profile/model/function_name.h"

// Whole names of C functions: libc's, gnulib's, GLib's, and names that many programs give to
// wrappers.
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
    "asprintf",
    "__asprintf",
    "___asprintf",
    "__asprintf_chk",
    "___asprintf_chk",
    "vasprintf",
    "__vasprintf",
    "__vasprintf_chk",
    "___vasprintf_chk",
    "__vasprintf_internal",
    "__alloc_dir", // a folder that is read
    "opendir_tail",
    "opendir",
    "__opendir",
    "fdopendir",
    "__fdopendir",
    "_obstack_begin",
    "_obstack_begin_1",
    "_obstack_begin_worker",
    "_obstack_newchunk",
    "call_chunkfun",
    "uv__malloc", // libuv
    "uv__calloc",
    "uv__realloc",
    "uv__reallocf",
    "uv__strdup",
    "uv__strndup",
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
    "imalloc", // gnulib: what the GNU programs share
    "icalloc",
    "irealloc",
    "ireallocarray",
    "ximalloc",
    "xinmalloc",
    "xizalloc",
    "xicalloc",
    "xirealloc",
    "xireallocarray",
    "xpalloc",
    "xcharalloc",
    "ximemdup",
    "ximemdup0",
    "xasprintf",
    "xvasprintf",
    "rpl_malloc",
    "rpl_calloc",
    "rpl_realloc",
    "rpl_reallocarray",
    "rpl_obstack_begin",
    "rpl_obstack_newchunk",
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
    "g_strdup_printf",
    "g_strdup_vprintf",
    "g_vasprintf",
    "g_memdup",
    "g_memdup2",
    "g_aligned_alloc",
    // Names of one program or family of programs.
    "zmalloc", // redis
    "zcalloc",
    "zrealloc",
    "zstrdup",
    "ztrymalloc",
    "ztrycalloc",
    "ztryrealloc",
    "ztrymalloc_usable",
    "zmalloc_usable",
    "zcalloc_usable",
    "zrealloc_usable",
    "ztrycalloc_usable",
    "ztryrealloc_usable",
    "ztrymalloc_usable_internal",
    "my_malloc", // mariadb
    "my_realloc",
    "my_strdup",
    "my_memdup",
    "my_multi_malloc",
    "my_multi_malloc_large",
    "av_malloc", // ffmpeg
    "av_mallocz",
    "av_calloc",
    "av_realloc",
    "av_strdup",
    "av_memdup",
    "av_fast_malloc",
    "av_fast_realloc",
    "x264_malloc",
    "ngx_alloc", // nginx
    "ngx_calloc",
    "ngx_memalign",
    "ggc_internal_alloc", // gcc
    "ggc_internal_cleared_alloc",
    "ggc_realloc",
    "objalloc_alloc", // binutils
    "_objalloc_alloc",
    "bfd_malloc",
    "bfd_zmalloc",
    "bfd_realloc",
    "_emalloc", // php
    "_ecalloc",
    "_erealloc",
    "_estrdup",
    "_estrndup",
    "__zend_malloc",
    "__zend_calloc",
    "__zend_realloc",
    "ruby_xmalloc", // ruby
    "ruby_xmalloc2",
    "ruby_xcalloc",
    "ruby_xrealloc",
    "ruby_xrealloc2",
    "ruby_strdup",
    "CRYPTO_malloc", // OpenSSL
    "CRYPTO_zalloc",
    "CRYPTO_realloc",
    "CRYPTO_strdup",
    "CRYPTO_strndup",
    "CRYPTO_memdup",
    "deflateInit_", // zlib, bzip2
    "deflateInit2_",
    "deflateCopy",
    "inflateInit_",
    "inflateInit2_",
    "inflateCopy",
    "BZ2_bzCompressInit",
    "BZ2_bzDecompressInit",
    "sqlite3Malloc", // SQLite
    "sqlite3MemMalloc",
    "sqlite3MemRealloc",
    "sqlite3_malloc",
    "sqlite3_malloc64",
    "Tcl_Alloc", // Tcl
    "TclpAlloc",
    "palloc", // PostgreSQL
    "palloc0",
    "MemoryContextAlloc",
    "AllocSetAlloc",
    "AcquireMagickMemory", // ImageMagick
    "AcquireAlignedMemory",
    "AcquireQuantumMemory",
    "_start", // outside main, and at the entry of a thread
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_main@@GLIBC_2.34",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "clone3",
    "__clone3",
    "cairn_report_alloc",
    "cairn_report_realloc",
};

// Prefixes of qualified names.
static const char *const prefixes[] = {
    "operator new",  // all forms
    "std::",         // C++: containers, strings, smart pointers, allocators
    "__gnu_cxx::",   // libstdc++'s allocators
    "__gnu_debug::", // its checked containers
    "hashbrown::",   // Rust's hash tables
    "<hashbrown::",
    "Perl_safesys", // perl's allocators
    "PyMem_",       // Python's
    "_PyMem_",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "_PyObject_Malloc",
    "_PyObject_Calloc",
    "_PyObject_Realloc",
    "v8::internal::AlignedAlloc", // V8's and node's
    "v8::internal::AllocWithRetry",
    "v8::internal::Heap::AllocateExternalBackingStore",
    "v8::internal::BackingStore::Allocate",
    "v8::ArrayBuffer::NewBackingStore",
    "node::NodeArrayBufferAllocator::",
    "v8::internal::Malloced::",
    "v8::internal::AccountingAllocator::",
    "v8::internal::Zone::",
    "v8::base::",
    "QArrayData::", // Qt's containers
    "QString::",
    "QByteArray::",
    "QList<",
    "QListData::",
    "QVector<",
    "QHash<",
    "QHashData::",
    "QMap<",
    "QMapDataBase::",
    "QVariant::",
    "boost::", // C++: containers, pointers, and what calls back
    "absl::",
    "folly::",
    "nlohmann::",
    "fmt::",
    "tokio::", // Rust: channels, tasks, and what spawns and polls them
    "bytes::bytes::",
    "bytes::bytes_mut::",
    "bytes::buf::",
    "futures_channel::",
    "futures_core::",
    "futures_executor::",
    "futures_task::",
    "futures_util::",
    "smallvec::",
    "indexmap::",
    "cairn::blocks::", // the crate's, as cairn_report_alloc above
    "__rust_alloc",    // Rust: from the language's hooks ...
    "__rust_realloc",
    "__rdl_",
    "__rg_",
    "__rustc::__r",
    "alloc::alloc::", // ... to the containers
    "alloc::raw_vec::",
    "alloc::vec::",
    "alloc::string::",
    "alloc::boxed::",
    "alloc::sync::",
    "alloc::rc::",
    "alloc::collections::",
    "alloc::borrow::",
    "alloc::slice::",
    "alloc::str::",
    "alloc::fmt::",
};

// Crates of Rust: `<T as Trait>::f` with a T of theirs passes on what T does.
static const char *const crates[] = {
    "alloc::",    "bytes::",    "core::", "futures_channel::", "futures_core::", "futures_util::",
    "indexmap::", "smallvec::", "std::",  "tokio::",
};

// Parts of source paths of the Rust library, in rustup's builds and in distributions' builds.
static const char *const file_parts[] = {
    "/library/alloc/src/",
    "/library/core/src/",
    "/library/std/src/",
};

// Where package managers and systems keep the sources of libraries, and how many folders follow
// that are one library's.
static const struct {
    const char *part;
    int folders;
} library_places[] = {
    {"/registry/src/", 2},                                         // cargo: index, crate
    {"/git/checkouts/", 2},     {"/usr/share/cargo/registry/", 1}, // Debian
    {"/vcpkg_installed/", 1},   {"/.conan/data/", 1},
    {"/.conan2/p/", 1},         {"/usr/include/", 0},
    {"/usr/local/include/", 0},
};

size_t library_folder_len(const char *file)
{
    for (size_t i = 0; i < ARRAY_LEN(library_places); i++) {
        const char *at = strstr(file, library_places[i].part);
        if (at == NULL || strncmp(at, "/usr/include/c++/", strlen("/usr/include/c++/")) == 0) {
            continue;
        }
        at += strlen(library_places[i].part);
        for (int n = 0; n < library_places[i].folders && at != NULL; n++) {
            at = strchr(at, '/');
            at = at != NULL ? at + 1 : NULL;
        }
        if (at != NULL) {
            return (size_t)(at - file);
        }
    }
    return 0;
}

// Whether a function is a program's own allocator, as C++'s containers call it or as rustc names
// its hooks: app::Pool<T>::allocate(unsigned long), app::_::__rg_alloc.
static bool is_own_allocator(const char *name, struct name_parts parts)
{
    static const char *const ends[] = {"::allocate", "::do_allocate"};
    static const char takes_size[] = "(unsigned long";
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const size_t len = strlen(ends[i]);
        if (parts.parameters_at >= parts.qualified_at + len &&
            strncmp(name + parts.parameters_at - len, ends[i], len) == 0 &&
            strncmp(name + parts.parameters_at, takes_size, strlen(takes_size)) == 0) {
            return true;
        }
    }
    return strstr(name + parts.qualified_at, "::__rg_") != NULL;
}

// Whether a name is that of a method of a trait which passes allocations on: of one of those
// crates' types, or of an allocator, which a program has for nothing else.
static bool is_method_of_wrapper(const char *qualified)
{
    const char *type = qualified + 1 + strspn(qualified + 1, "&*([");
    static const char *const words[] = {"dyn ", "mut ", "const "};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        type += strncmp(type, words[i], strlen(words[i])) == 0 ? strlen(words[i]) : 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(crates); i++) {
        if (strncmp(type, crates[i], strlen(crates[i])) == 0) {
            return true;
        }
    }
    return strstr(type, "::GlobalAlloc>::") != NULL || strstr(type, " as GlobalAlloc>::") != NULL;
}

bool is_wrapper_frame(const char *function, const char *file)
{
    for (size_t i = 0; i < ARRAY_LEN(file_parts); i++) {
        if (strstr(file, file_parts[i]) != NULL) {
            return true;
        }
    }
    if (function[0] == '\0') {
        return false;
    }
    const struct name_parts parts = name_split(function);
    const char *qualified = function + parts.qualified_at;
    const size_t len = parts.parameters_at - parts.qualified_at; // gcc compiles C names as C++, too
    if ((qualified[0] == '<' && is_method_of_wrapper(qualified)) ||
        is_own_allocator(function, parts)) {
        return true;
    }
    // The first letter alone is a fast check: few names share one, and thousands are checked.
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (qualified[0] == prefixes[i][0] &&
            strncmp(qualified, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(c_functions); i++) {
        if (qualified[0] == c_functions[i][0] && strlen(c_functions[i]) == len &&
            memcmp(qualified, c_functions[i], len) == 0) {
            return true;
        }
    }
    return false;
}
