// SPDX-License-Identifier: MIT
// name_memo: what is known of one module's names without opening it: what the cache holds, and what
// this run has looked up and the cache does not hold yet.
//
//   name_memo_open (reads the cache, once) -> name_memo_find ... name_memo_add -> name_memo_store
//
// A zeroed memo knows nothing and is valid. Owns its memory. Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "symbols/name_cache.h"

struct name_memo {
    const struct name_cache *cache; // borrowed; NULL: there is none
    struct cache_key key;
    struct cache_entry entry; // owned; as it was read
    struct fresh_names fresh; // owned; not in the cache yet
    bool is_open;
};

void name_memo_release(struct name_memo *memo);

// ERR_NO_MEMORY.
enum err name_memo_open(struct name_memo *memo,
                        const struct name_cache *cache,
                        const struct cache_key *key) MUST_USE;

// From here on it knows nothing and keeps nothing.
void name_memo_close(struct name_memo *memo);

// Whether the answer for `address` is known; then it is appended to `out` (nothing, if nothing is
// there). ERR_NO_MEMORY, ERR_LIMIT.
enum err name_memo_find(const struct name_memo *memo,
                        uint64_t address,
                        struct string_table *strings,
                        struct symbol_frame_vec *out,
                        uint64_t *out_function_start,
                        bool *out_is_known) MUST_USE;

// The file that the known names came from; "" if none. Borrowed.
const char *name_memo_source(const struct name_memo *memo);

// Keeps an answer that came from debug information. ERR_NO_MEMORY.
enum err name_memo_add(struct name_memo *memo,
                       uint64_t address,
                       uint64_t function_start,
                       const struct symbol_frame *frames,
                       uint32_t count) MUST_USE;

// Writes what is new to the cache, if that can be done; it is not new any more.
void name_memo_store(struct name_memo *memo,
                     const char *module,
                     const char *source,
                     const struct string_table *strings);
