// SPDX-License-Identifier: MIT
// name_memo: the names of one module that are known without opening it: cached names, and names
// that this run looked up and has not cached yet.
//
//   name_memo_open (reads the cache, once) -> name_memo_find ... name_memo_add -> name_memo_store
//
// A zeroed memo is empty and valid. Owns its memory. Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "symbols/name_cache.h"

struct name_memo {
    const struct name_cache *cache; // borrowed; NULL: no cache
    struct cache_key key;
    struct cache_entry entry; // owned; as read from the cache
    struct fresh_names fresh; // owned; not cached yet
    bool is_open;
};

void name_memo_release(struct name_memo *memo);

// Open the memo and read the module's cache file. ERR_NO_MEMORY.
enum err name_memo_open(struct name_memo *memo,
                        const struct name_cache *cache,
                        const struct cache_key *key) MUST_USE;

// Empty the memo; it stays valid and stores nothing.
void name_memo_close(struct name_memo *memo);

// Look up `address`. If its answer is known, append the answer's frames, perhaps none, to `out`.
// ERR_NO_MEMORY, ERR_LIMIT.
enum err name_memo_find(const struct name_memo *memo,
                        uint64_t address,
                        struct string_table *strings,
                        struct symbol_frame_vec *out,
                        uint64_t *out_function_start,
                        bool *out_is_known) MUST_USE;

// Return the file with the known names, "" if none. Borrowed.
const char *name_memo_source(const struct name_memo *memo);

// Add an answer from debug information. ERR_NO_MEMORY.
enum err name_memo_add(struct name_memo *memo,
                       uint64_t address,
                       uint64_t function_start,
                       const struct symbol_frame *frames,
                       uint32_t count) MUST_USE;

// Write the new answers to the cache if possible. They are not new afterwards.
void name_memo_store(struct name_memo *memo,
                     const char *module,
                     const char *source,
                     const struct string_table *strings);
