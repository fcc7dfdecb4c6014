// SPDX-License-Identifier: MIT
#include "symbols/name_memo.h"

#include "base/compiler.h"

void name_memo_release(struct name_memo *memo)
{
    cache_entry_release(&memo->entry);
    fresh_names_release(&memo->fresh);
    *memo = (struct name_memo){0};
}

enum err
name_memo_open(struct name_memo *memo, const struct name_cache *cache, const struct cache_key *key)
{
    TRY(name_cache_read(cache, key, &memo->entry));
    memo->cache = key->name[0] != '\0' ? cache : NULL;
    memo->key = *key;
    memo->is_open = true;
    return ERR_OK;
}

void name_memo_close(struct name_memo *memo)
{
    name_memo_release(memo);
    memo->is_open = true;
}

enum err name_memo_find(const struct name_memo *memo,
                        uint64_t address,
                        struct string_table *strings,
                        struct symbol_frame_vec *out,
                        uint64_t *out_function_start,
                        bool *out_is_known)
{
    const struct cached_names *names = &memo->entry.names;
    struct cached_place place;
    if (!memo->entry.is_found || !cached_names_find(names, address, &place)) {
        *out_is_known = false;
        return ERR_OK;
    }
    for (uint32_t i = 0; i < place.count; i++) {
        const struct cached_frame cached = cached_names_frame(names, place.first + i);
        struct symbol_frame frame = {.line = cached.line, .is_inlined = cached.is_inlined};
        TRY(string_table_intern_text(strings, cached.function, &frame.function));
        TRY(string_table_intern_text(strings, cached.file, &frame.file));
        TRY(out->len < UINT32_MAX ? symbol_frame_vec_push(out, frame) : ERR_LIMIT);
    }
    *out_function_start = place.function_start;
    *out_is_known = true;
    return ERR_OK;
}

const char *name_memo_source(const struct name_memo *memo)
{
    return memo->entry.is_found ? memo->entry.names.source : "";
}

enum err name_memo_add(struct name_memo *memo,
                       uint64_t address,
                       uint64_t function_start,
                       const struct symbol_frame *frames,
                       uint32_t count)
{
    return memo->cache != NULL
               ? fresh_names_add(&memo->fresh, address, function_start, frames, count)
               : ERR_OK;
}

void name_memo_store(struct name_memo *memo,
                     const char *module,
                     const char *source,
                     const struct string_table *strings)
{
    if (memo->cache != NULL && memo->fresh.places.len > 0) {
        // An unwritable cache costs only time in the next run.
        (void)name_cache_write(memo->cache, &memo->key, module, source, &memo->fresh, strings,
                               NULL);
    }
    fresh_names_release(&memo->fresh);
}
