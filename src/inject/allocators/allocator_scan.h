// SPDX-License-Identifier: MIT
// allocator_scan: finds the functions of a module that are the entries of an allocator.
//
// The names come from .dynsym and .symtab. Where these name no allocator and the module was
// stripped, they come from the .symtab of a separate debug file, if it is an executable, prints
// messages of an allocator, or may have the user's names: most libraries have no allocator, and
// debug files are large. Several names of one address are one entry. The operators new and delete
// count only where the module also defines malloc, since those of a C++ runtime call the malloc of
// another module. A module may have several allocators.
//
// Also found are the other functions that the agent hooks: of the loader, execve, and mmap and its
// kin, _exit, and setrlimit, in libc or a static program, or where a module exports its own instead
// of libc's, as tcmalloc's mmap.
//
// Where there is no name, texts that an allocator prints show that it is there all the same:
// `hidden`. A static executable without names has one in any case. The texts of an executable are
// searched by a function of their own, which can wait until it runs: megabytes are read, and only a
// warning depends on it. A runtime whose own allocator has no such functions hides none: names
// would not help, and symbols/runtimes says what does.
// Owns its entries. Context: H; one thread (libelf).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "inject/allocators/allocator_names.h"
#include "session/agent_hooks.h"
#include "symbols/elf/elf_file.h"
#include "symbols/names/name_sources.h"
#include "symbols/runtimes/runtime_table.h"

// A function to patch. Addresses are those of the file (st_value), without the load bias.
struct allocator_entry {
    uint64_t addr;
    uint64_t size_bytes; // 0: unknown
    enum agent_hook hook;
    int32_t nothrow;  // index of the entry of a throwing operator's nothrow form; -1: none
    bool is_users;    // the user has named it
    bool changes_all; // set by attach/module_code.h
    char *name;       // owned; without version
};
DEFINE_VEC(allocator_entry_vec, struct allocator_entry);

struct allocator_scan {
    struct allocator_entry_vec entries; // sorted by address, which differ
    const char *owner;  // static; the allocator, in lower case; NULL: unknown, or several
    const char *hidden; // static; an allocator that is in the module and has no entries; NULL: none
    const struct runtime *runtime; // that the module contains; NULL: none is known
    bool has_unread_texts;         // of an executable without names: `hidden` is not final
    bool is_library;
    bool is_libc; // or contains it
    // The functions were found, but are not entries: the agent knows threads by their thread
    // pointer, and this static program has none.
    bool lacks_thread_pointer;
};

// Scan an open module. `path` is the module's in the target. `sources` says where a separate debug
// file may be; NULL: read none. `names` are the user's, NULL: none. A damaged file has fewer
// entries. ERR_NO_MEMORY.
enum err allocator_scan(const struct elf_file *module,
                        const char *path,
                        const struct name_sources *sources,
                        const struct allocator_name_vec *names,
                        struct allocator_scan *out) MUST_USE;
void allocator_scan_release(struct allocator_scan *scan); // accepts a zeroed one

// Search the texts of the executable, if they may name a hidden allocator: `hidden` is final.
void allocator_scan_read_texts(struct allocator_scan *scan, const struct elf_file *module);

// Return the name of the sanitizer that is linked into the module, NULL if there is none. A
// stripped one has no name: "a sanitizer".
const char *allocator_scan_sanitizer(const struct elf_file *module);

// Whether the module has a function that allocates.
bool allocator_scan_has_allocator(const struct allocator_scan *scan);

// Append a sentence about a hidden allocator: module, build-id, and what would help.
void allocator_scan_explain(const struct allocator_scan *scan,
                            const struct elf_file *module,
                            const char *path,
                            struct strbuf *out);
