// SPDX-License-Identifier: MIT
// code_index: interns functions and locations. See code_index.h.
//
// All keys are exact: two 32-bit ids in one 64-bit key, so hash collisions never merge entries.
#include "profile/model/code_index.h"

#include "profile/model/function_name.h"
#include "recording/format/tables.h"

// Many frames have the same texts, and a key is found faster.
static MUST_USE enum err
intern_text(struct code_index *index, const char *text, uint32_t key, uint32_t *out)
{
    if (key >= index->key_names.len) {
        TRY(u32_vec_resize(&index->key_names, (size_t)key + 1));
    }
    uint32_t *known = &index->key_names.items[key];
    if (*known != 0) {
        *out = *known - 1;
        return ERR_OK;
    }
    TRY(string_table_intern_text(&index->names, text, out));
    *known = key != 0 ? *out + 1 : 0;
    return ERR_OK;
}

static MUST_USE enum err intern_function(struct code_index *index,
                                         const struct code_position *position,
                                         uint32_t module,
                                         uint32_t flags,
                                         uint32_t *out)
{
    const char *name = position->function;
    uint32_t name_id;
    TRY(intern_text(index, name, position->function_key, &name_id));
    uint32_t id;
    TRY(map_u64_number(&index->function_ids, map_u64_pair(name_id, module), index->functions.len,
                       &id));
    if (id == index->functions.len) {
        flags |= (flags & CODE_UNKNOWN) == 0 && is_wrapper_frame(name, "") ? CODE_WRAPPER : 0;
        struct code_function function = {.name = name_id, .module = module, .flags = flags};
        TRY(code_function_vec_push(&index->functions, function));
    }
    *out = id;
    return ERR_OK;
}

// What a file says about its locations. Many share one.
static MUST_USE enum err
find_file_flags(struct code_index *index, uint32_t file, const char *path, uint32_t *out)
{
    enum {
        IS_FOUND = 1U << 31
    };
    if (file >= index->file_flags.len) {
        TRY(u32_vec_resize(&index->file_flags, (size_t)file + 1));
    }
    uint32_t *known = &index->file_flags.items[file];
    if (*known == 0) {
        *known = IS_FOUND;
        *known |= is_wrapper_frame("", path) ? CODE_WRAPPER : 0;
        *known |= library_folder_len(path) > 0 ? CODE_WRAPPER | CODE_LIBRARY : 0;
    }
    *out = *known & ~IS_FOUND;
    return ERR_OK;
}

static MUST_USE enum err intern_location(struct code_index *index,
                                         uint32_t module,
                                         uint64_t offset,
                                         const struct code_position *position,
                                         uint32_t flags,
                                         uint32_t *out)
{
    struct code_location location = {.line = position->line, .flags = flags, .offset = offset};
    TRY(intern_function(index, position, module, flags, &location.function));
    TRY(intern_text(index, position->file, position->file_key, &location.file));
    uint32_t place;
    uint32_t id;
    TRY(map_u64_number(&index->place_ids, map_u64_pair(location.file, location.line),
                       map_u64_count(&index->place_ids), &place));
    TRY(map_u64_number(&index->location_ids, map_u64_pair(location.function, place),
                       index->locations.len, &id));
    if (id == index->locations.len) {
        location.flags |= index->functions.items[location.function].flags; // those of its name, too
        uint32_t by_file;
        TRY(find_file_flags(index, location.file, position->file, &by_file));
        location.flags |= by_file;
        TRY(code_location_vec_push(&index->locations, location));
    }
    *out = id;
    return ERR_OK;
}

enum err code_index_add_frame(struct code_index *index,
                              uint32_t module,
                              uint64_t offset,
                              uint32_t flags,
                              const struct code_position *positions,
                              size_t count,
                              const char *unnamed)
{
    static const struct code_position unknown = {.function = "", .file = ""};
    static const struct code_position cut = {.function = "[truncated]", .file = ""};
    static const struct code_position merged = {.function = "[merged]", .file = ""};
    bool is_cut = (flags & REC_FRAME_CUT) != 0;
    if (is_cut || count == 0) {
        positions = !is_cut ? &unknown : offset == REC_CUT_MERGED ? &merged : &cut;
        module = is_cut ? REC_NONE : module;
        count = 1;
    }
    if (index->chain_first.len == 0) {
        TRY(u32_vec_push(&index->chain_first, 0));
    }
    TRY(u32_vec_reserve(&index->chain, count));
    for (size_t i = 0; i < count; i++) {
        uint32_t id;
        struct code_position position = positions[i];
        uint32_t is = is_cut ? CODE_CUT : 0;
        if (position.function[0] == '\0') {
            position.function = unnamed;
            position.function_key = 0;
            is |= CODE_UNKNOWN;
        }
        TRY(intern_location(index, module, offset, &position, is, &id));
        TRY(u32_vec_push(&index->chain, id));
    }
    if (index->chain.len >= UINT32_MAX) {
        return ERR_LIMIT;
    }
    return u32_vec_push(&index->chain_first, (uint32_t)index->chain.len);
}

void code_index_finish(struct code_index *index)
{
    map_u64_release(&index->function_ids);
    map_u64_release(&index->place_ids);
    map_u64_release(&index->location_ids);
    u32_vec_release(&index->file_flags);
    u32_vec_release(&index->key_names);
}

void code_index_release(struct code_index *index)
{
    code_index_finish(index);
    string_table_release(&index->names);
    code_function_vec_release(&index->functions);
    code_location_vec_release(&index->locations);
    u32_vec_release(&index->chain);
    u32_vec_release(&index->chain_first);
    u32_vec_release(&index->chain_of_node);
}
