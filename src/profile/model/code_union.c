// SPDX-License-Identifier: MIT
#include "profile/model/code_union.h"

#include <string.h>

#include "base/compiler.h"
#include "host/containers/string_table.h"
#include "host/os/file.h"
#include "host/text/strbuf.h"
#include "profile/model/function_name.h"
#include "profile/model/program_pairs.h"

// The named functions of the new recording, whatever their modules.
struct namesakes {
    uint32_t in_module; // the only one with a module; SEVERAL, or REC_NONE
    uint32_t elsewhere; // the one without a module, or REC_NONE
};

#define SEVERAL (REC_NONE - 1)

DEFINE_VEC(namesakes_vec, struct namesakes);

// Functions by name, while building.
struct register_of_names {
    struct program_pairs programs;  // paired programs, whose file names differ
    struct string_table called;     // name, a zero, the module's file name without version
    struct u32_vec ids;             // by string id - 1
    struct string_table bare;       // name
    struct namesakes_vec namesakes; // by string id - 1
    struct strbuf scratch;
};

static void register_release(struct register_of_names *names)
{
    program_pairs_release(&names->programs);
    string_table_release(&names->called);
    u32_vec_release(&names->ids);
    string_table_release(&names->bare);
    namesakes_vec_release(&names->namesakes);
    strbuf_release(&names->scratch);
}

// The length of a library's file name without its version. A rebuild may change the version, and
// tools differ in whether they name the link or its target.
static size_t len_without_version(const char *file_name)
{
    const char *version = strstr(file_name, ".so.");
    return version != NULL ? (size_t)(version - file_name) + strlen(".so") : strlen(file_name);
}

static const char *function_name_of(const struct profile *profile, uint32_t function)
{
    return string_table_get(&profile->code.names, profile->code.functions.items[function].name);
}

static const char *function_module_of(const struct profile *profile, uint32_t function)
{
    return profile_module_path(profile, profile->code.functions.items[function].module);
}

static bool is_unnamed(const struct profile *profile, uint32_t function)
{
    return (profile->code.functions.items[function].flags & CODE_UNKNOWN) != 0;
}

static const char *build_id_of(const struct profile *profile, uint32_t function)
{
    const uint32_t module = profile->code.functions.items[function].module;
    return module == REC_NONE
               ? ""
               : profile_string(profile, profile->recording.modules[module].build_id);
}

// Append what distinguishes functions of one name: the file name, or the number of a pair of
// programs, which no file name can equal.
static void append_module(struct register_of_names *names,
                          enum side side,
                          const struct profile *profile,
                          uint32_t function)
{
    uint32_t index = profile->code.functions.items[function].module;
    uint32_t pair = index != REC_NONE ? names->programs.numbers[side].items[index] : 0;
    if (pair != 0) {
        strbuf_printf(&names->scratch, "/%u", pair);
        return;
    }
    const char *module = path_file_name(function_module_of(profile, function));
    strbuf_append(&names->scratch, module, len_without_version(module));
}

// Find the id of this function's name and module; enter `new_id` for a new name.
static MUST_USE enum err find_id(struct register_of_names *names,
                                 enum side side,
                                 const struct profile *profile,
                                 uint32_t function,
                                 uint32_t new_id,
                                 uint32_t *out)
{
    struct strbuf *called = &names->scratch;
    strbuf_clear(called);
    const char *name = function_name_of(profile, function);
    if (is_unnamed(profile, function)) {
        // Offsets are equal in equal builds only, so they do not match across builds.
        name += strcspn(name, "+");
        strbuf_append_text(called, name);
        strbuf_append_text(called, build_id_of(profile, function));
    } else {
        strbuf_append(called, name, name_len_without_clones(name));
    }
    strbuf_append_char(called, '\0');
    append_module(names, side, profile, function);
    TRY(strbuf_result(called));
    uint32_t string;
    TRY(string_table_intern(&names->called, called->data, called->len, &string));
    if (string > names->ids.len) {
        TRY(u32_vec_push(&names->ids, new_id));
    }
    *out = names->ids.items[string - 1];
    return ERR_OK;
}

// Find the functions of the same name in any module; enter a new name.
static MUST_USE enum err find_namesakes(struct register_of_names *names,
                                        const struct profile *profile,
                                        uint32_t function,
                                        struct namesakes **out)
{
    const struct namesakes none = {.in_module = REC_NONE, .elsewhere = REC_NONE};
    const char *name = function_name_of(profile, function);
    uint32_t string;
    TRY(string_table_intern(&names->bare, name, name_len_without_clones(name), &string));
    while (names->namesakes.len <= string) { // string id 0 is the empty name
        TRY(namesakes_vec_push(&names->namesakes, none));
    }
    *out = &names->namesakes.items[string];
    return ERR_OK;
}

static MUST_USE enum err
add_namesake(struct register_of_names *names, const struct profile *profile, uint32_t id)
{
    struct namesakes *namesakes;
    TRY(find_namesakes(names, profile, id, &namesakes));
    if (function_module_of(profile, id)[0] == '\0') {
        namesakes->elsewhere = id;
    } else {
        uint32_t known = namesakes->in_module;
        namesakes->in_module = known == REC_NONE || known == id ? id : SEVERAL;
    }
    return ERR_OK;
}

// Return in *out the id for a function of the old recording that has no exact match in the new one.
// If it has only one namesake and one of the two lacks a module, they share an id; else it gets
// `next`.
static MUST_USE enum err match_loosely(struct register_of_names *names,
                                       const struct profile *old,
                                       uint32_t function,
                                       uint32_t next,
                                       uint32_t *out)
{
    struct namesakes *namesakes;
    *out = next;
    if (is_unnamed(old, function)) {
        return ERR_OK;
    }
    TRY(find_namesakes(names, old, function, &namesakes));
    bool has_module = function_module_of(old, function)[0] != '\0';
    uint32_t match = has_module ? namesakes->elsewhere : namesakes->in_module;
    *out = match == REC_NONE || match == SEVERAL ? next : match;
    return ERR_OK;
}

static MUST_USE enum err take_new(struct code_union *code)
{
    size_t count = code->profiles[SIDE_NEW]->code.functions.len;
    TRY(u32_vec_resize(&code->ids[SIDE_NEW], count));
    TRY(code_origin_vec_resize(&code->origins, count));
    for (size_t i = 0; i < count; i++) {
        code->ids[SIDE_NEW].items[i] = (uint32_t)i;
        code->origins.items[i] = (struct code_origin){SIDE_NEW, (uint32_t)i};
    }
    return ERR_OK;
}

static MUST_USE enum err merge_profile(struct code_union *code)
{
    CLEANUP(register_release) struct register_of_names names = {0};
    TRY(program_pairs_build(code->profiles[SIDE_NEW], code->profiles[SIDE_OLD], &names.programs));
    for (uint32_t i = 0; i < code->ids[SIDE_NEW].len; i++) {
        uint32_t *id = &code->ids[SIDE_NEW].items[i];
        TRY(find_id(&names, SIDE_NEW, code->profiles[SIDE_NEW], i, i, id));
        TRY(add_namesake(&names, code->profiles[SIDE_NEW], *id));
    }
    size_t count = code->profiles[SIDE_OLD]->code.functions.len;
    TRY(u32_vec_resize(&code->ids[SIDE_OLD], count));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t next = (uint32_t)code->origins.len;
        uint32_t id;
        TRY(match_loosely(&names, code->profiles[SIDE_OLD], i, next, &id));
        TRY(find_id(&names, SIDE_OLD, code->profiles[SIDE_OLD], i, id, &id));
        if (id == next) {
            TRY(code_origin_vec_push(&code->origins, (struct code_origin){SIDE_OLD, i}));
        }
        code->ids[SIDE_OLD].items[i] = id;
    }
    return ERR_OK;
}

// Unnamed code of a module shares one id, though only one function of it may be a wrapper.
static MUST_USE enum err take_wrappers(struct code_union *code)
{
    TRY(flag_vec_resize(&code->wrappers, code->origins.len));
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        for (size_t i = 0; i < code->ids[side].len; i++) {
            const uint32_t flags = code->profiles[side]->code.functions.items[i].flags;
            if ((flags & (CODE_WRAPPER | CODE_UNKNOWN)) == CODE_WRAPPER) {
                code->wrappers.items[code->ids[side].items[i]] = 1;
            }
        }
    }
    return ERR_OK;
}

enum err
code_union_build(const struct profile *new, const struct profile *old, struct code_union *out)
{
    CLEANUP(code_union_release) struct code_union code = {.profiles = {new, old}};
    TRY(take_new(&code));
    if (old != NULL) {
        TRY(merge_profile(&code));
    }
    TRY(take_wrappers(&code));
    *out = TAKE(code);
    return ERR_OK;
}

void code_union_release(struct code_union *code)
{
    u32_vec_release(&code->ids[SIDE_NEW]);
    u32_vec_release(&code->ids[SIDE_OLD]);
    code_origin_vec_release(&code->origins);
    flag_vec_release(&code->wrappers);
    code_rename_vec_release(&code->renames);
}

enum err code_union_rename(struct code_union *code, uint32_t from, uint32_t to)
{
    TRY(code_rename_vec_push(&code->renames, (struct code_rename){.from = from, .to = to}));
    struct u32_vec *ids = &code->ids[SIDE_OLD];
    for (size_t i = 0; i < ids->len; i++) {
        ids->items[i] = ids->items[i] == from ? to : ids->items[i];
    }
    code->wrappers.items[to] |= code->wrappers.items[from];
    return ERR_OK;
}

const char *code_union_name(const struct code_union *code, uint32_t id)
{
    struct code_origin origin = code->origins.items[id];
    return function_name_of(code->profiles[origin.side], origin.function);
}

const char *code_union_module(const struct code_union *code, uint32_t id)
{
    struct code_origin origin = code->origins.items[id];
    return function_module_of(code->profiles[origin.side], origin.function);
}
