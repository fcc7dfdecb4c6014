// SPDX-License-Identifier: MIT
// name_cache: a folder that keeps names which were looked up once, so that the next run need not
// read the same debug information again.
//
//   ~/.cache/cairn/                      0700, ours; $XDG_CACHE_HOME/cairn where that is set
//     <build-id>.names                   one file for each module (cached_names.h)
//     file-<hash of its path>.names      of a module without a build-id
//     limit                              bytes that all files may have together, if it was changed
//
// Only names that came from debug information are kept: of one build-id these are always the same,
// whether or not the module and its debug information are still there. A file is used if it is
// ours, sound, and written by this very build of cairn. A user who has no such folder, cannot write
// to it, or finds somebody else's there, works without. Files are replaced in one step, so any
// number of processes may read and write; of two that write at one time, one's news are lost and
// looked up again. A file that is used becomes the youngest, and when all have more bytes than the
// limit, the oldest go. Context: H; any thread, one at a time for one struct. Failure costs only
// time, so that those who look names up do not hear of it.
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
    struct strbuf folder; // owned; "": there is none
    char reader[96];      // this build of cairn
};

// Where the folder lies for this user and environment, without touching it.
enum err name_cache_init(struct name_cache *cache) MUST_USE;
void name_cache_release(struct name_cache *cache);

enum {
    CACHE_NAME_BYTES = 160,
};

// What a module's file is called. `identity` is what must be equal for its names to hold.
struct cache_key {
    char name[CACHE_NAME_BYTES]; // "": the module is not kept
    uint64_t identity;           // of a file without a build-id; else 0
};

struct cache_key cache_key_of_build_id(struct bytes build_id);
struct cache_key cache_key_of_file(const char *path, const struct stat *status);

// A module's names as they lie in the cache.
struct cache_entry {
    struct strbuf bytes; // owned
    struct cached_names names;
    bool is_found;
};

void cache_entry_release(struct cache_entry *entry);

// Nothing found is no failure. ERR_NO_MEMORY.
enum err name_cache_read(const struct name_cache *cache,
                         const struct cache_key *key,
                         struct cache_entry *out) MUST_USE;

// Adds `fresh` to what is there by now, and removes what is too old if that becomes too much.
// `source` is the file that the names came from. Sorts `fresh`. ERR_NO_MEMORY, ERR_LIMIT; what the
// folder refuses (`info`).
enum err name_cache_write(const struct name_cache *cache,
                          const struct cache_key *key,
                          const char *module,
                          const char *source,
                          struct fresh_names *fresh,
                          const struct string_table *strings,
                          struct err_info *info);

// What lies in the folder, for those who look after it.
struct cache_file {
    char name[CACHE_NAME_BYTES];
    uint64_t bytes;
    int64_t used_ns; // when it was last used, CLOCK_REALTIME
};

DEFINE_VEC(cache_file_vec, struct cache_file);

// All files but `limit`, the youngest first. No folder: none. ERR_IO, ERR_PERMISSION,
// ERR_NO_MEMORY.
enum err name_cache_list(const struct name_cache *cache,
                         struct cache_file_vec *out,
                         struct err_info *info) MUST_USE;

// Reads and checks one of them. Not found: it is damaged, or another build of cairn's.
enum err name_cache_read_file(const struct name_cache *cache,
                              const char *name,
                              struct cache_entry *out) MUST_USE;

// Removes the oldest until no more than `limit_bytes` are left. `out_count` may be NULL.
enum err name_cache_trim(const struct name_cache *cache,
                         uint64_t limit_bytes,
                         size_t *out_count,
                         struct err_info *info) MUST_USE;

uint64_t name_cache_limit(const struct name_cache *cache);
enum err name_cache_set_limit(const struct name_cache *cache, uint64_t bytes, struct err_info *info)
    MUST_USE;
