// SPDX-License-Identifier: MIT
// name_cache: a folder of looked-up names, so that a later run need not read the same debug
// information again.
//
//   ~/.cache/cairn/                      0700, the user's; or $XDG_CACHE_HOME/cairn
//     <build-id>.names                   one file for each module (cached_names.h)
//     file-<hash of its path>.names      one for each module without a build-id that can be trusted
//     limit                              limit for the bytes of all files, if changed
//
// The cache holds only names from debug information. A build-id is a claim of the module's file. If
// only root and the user can have written that file, the names are the same for one build-id,
// whether or not the module and its debug information still exist. The names of any other file are
// kept for this one file: for its device, inode, size, owner and times; the kernel alone sets the
// time of change. So a file that claims the build-id of another one changes only its own names.
// A file is used if the user owns it, it is
// sound, and the same build of cairn wrote it. Without a folder, or if the folder is read-only or
// has another owner, cairn works without a cache. Files are replaced in one step, so any number of
// processes may read and write; if two write at once, the new names of one are lost and looked up
// again. Using a file makes it the youngest. When the files exceed the limit, the oldest are
// removed. Context: H; any thread, one at a time for one struct. A failure costs only time, so
// lookups do not report it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"
#include "symbols/cached_names.h"

#define NAME_CACHE_LIMIT_DEFAULT ((uint64_t)256 << 20)

struct name_cache {
    struct strbuf folder; // owned; "": none
    char reader[96];      // this build of cairn
};

// Set the folder's path from user and environment, without touching it.
enum err name_cache_init(struct name_cache *cache) MUST_USE;
void name_cache_release(struct name_cache *cache);

enum {
    CACHE_NAME_BYTES = 160,
    CACHE_IDENTITY_BYTES = 144,
};

// The identity of a module's file. `name` is the file's name in the cache; `identity` must be equal
// for the names to be valid.
struct cache_key {
    char name[CACHE_NAME_BYTES];         // "": the module is not cached
    char identity[CACHE_IDENTITY_BYTES]; // of a file whose build-id does not count; else ""
};

bool cache_key_is_same(const struct cache_key *one, const struct cache_key *other);

struct cache_key cache_key_of_build_id(struct bytes build_id);
struct cache_key cache_key_of_file(const char *path, const struct stat *status);

// The cached names of a module.
struct cache_entry {
    struct strbuf bytes; // owned
    struct cached_names names;
    bool is_found;
};

void cache_entry_release(struct cache_entry *entry);

// Read the names of a module. A missing file gives ERR_OK. ERR_NO_MEMORY.
enum err name_cache_read(const struct name_cache *cache,
                         const struct cache_key *key,
                         struct cache_entry *out) MUST_USE;

// Add `fresh` to the module's file as it is now, and remove the oldest files if all exceed the
// limit. `source` is the file with the names. Sorts `fresh`. ERR_NO_MEMORY, ERR_LIMIT; `info`
// describes a failure of the folder.
enum err name_cache_write(const struct name_cache *cache,
                          const struct cache_key *key,
                          const char *module,
                          const char *source,
                          struct fresh_names *fresh,
                          const struct string_table *strings,
                          struct err_info *info);

// A file in the folder, for `cairn cache`.
struct cache_file {
    char name[CACHE_NAME_BYTES];
    uint64_t bytes;
    int64_t used_ns; // time of its last use, CLOCK_REALTIME
};

DEFINE_VEC(cache_file_vec, struct cache_file);

// List all files but `limit`, the youngest first. A missing folder gives none. ERR_IO,
// ERR_PERMISSION, ERR_NO_MEMORY.
enum err name_cache_list(const struct name_cache *cache,
                         struct cache_file_vec *out,
                         struct err_info *info) MUST_USE;

// Read and check one of them. A file that is damaged or of another cairn build counts as not found.
enum err name_cache_read_file(const struct name_cache *cache,
                              const char *name,
                              struct cache_entry *out) MUST_USE;

// Remove the oldest files until at most `limit_bytes` are left. `out_count` may be NULL.
enum err name_cache_trim(const struct name_cache *cache,
                         uint64_t limit_bytes,
                         size_t *out_count,
                         struct err_info *info) MUST_USE;

uint64_t name_cache_limit(const struct name_cache *cache);
enum err name_cache_set_limit(const struct name_cache *cache, uint64_t bytes, struct err_info *info)
    MUST_USE;
