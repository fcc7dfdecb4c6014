// SPDX-License-Identifier: MIT
// wrapper_search: finds the wrappers of a recording by how they are called. See wrappers.h.
//
//   row:   main > parse > new_node > zmalloc > (malloc)
//                         caller     candidate: the function of the call site
//
// Each candidate's callers, sizes and places are counted as pairs in one map for each of the three.
//
// Below a function of Python every native frame is a wrapper, but not elsewhere: PyDict_New is one
// in a Python function's stack, and a call site in the interpreter's start. Above the outermost
// one, the frames of the interpreter are wrappers. Such frames have a second chain, see
// code_index.h.
#include <string.h>

#include "base/compiler.h"
#include "host/containers/map_u64.h"
#include "profile/model/function_name.h"
#include "profile/model/wrappers.h"

enum {
    ROUNDS = 4,          // wrappers of wrappers of wrappers
    ROUNDS_BY_CALLS = 2, // for names without a word: deeper ones are more likely the program's own
    NAMED_CALLERS = 3,
    NAMED_SIZES = 3,
    OTHER_CALLERS = 12,
    OTHER_SIZES = 8,
    OTHER_PLACES = 2,
    OTHER_SHARE = 5, // a fifth of all allocations or of all bytes
};

struct candidate {
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint32_t callers; // distinct functions
    uint32_t sizes;   // distinct size buckets
    uint32_t places;  // distinct frames of the call site
};

DEFINE_VEC(candidate_vec, struct candidate);

struct search {
    const struct recording *recording;
    struct code_index *code;
    struct u32_vec size_starts;      // by row, in the size buckets
    struct candidate_vec candidates; // by function
    struct map_u64 callers;          // (candidate, caller)
    struct map_u64 sizes;            // (candidate, bucket)
    struct map_u64 places;           // (candidate, frame)
};

static void search_release(struct search *search)
{
    u32_vec_release(&search->size_starts);
    candidate_vec_release(&search->candidates);
    map_u64_release(&search->callers);
    map_u64_release(&search->sizes);
    map_u64_release(&search->places);
}

void call_site_offer(struct call_site_location *site,
                     const struct code_index *code,
                     struct call_site_location wrapper)
{
    const struct code_location *locations = code->locations.items;
    if (site->location == REC_NONE || ((locations[site->location].flags & CODE_LIBRARY) == 0 &&
                                       (locations[wrapper.location].flags & CODE_LIBRARY) != 0)) {
        *site = wrapper;
    }
}

struct call_site_location
wrappers_call_site(const struct recording *recording, const struct code_index *code, uint32_t node)
{
    struct call_site_location site = {.location = REC_NONE, .frame = REC_NONE};
    for (; node != 0; node = recording->nodes[node].parent) {
        uint32_t frame = recording->nodes[node].frame;
        struct code_chain chain = code_index_node_chain(code, node, frame);
        for (size_t i = 0; i < chain.count; i++) {
            struct call_site_location here = {
                .location = chain.locations[i], .frame = frame, .is_inlined = i + 1 < chain.count};
            if ((code->locations.items[here.location].flags & CODE_WRAPPER) == 0) {
                return here;
            }
            call_site_offer(&site, code, here);
        }
    }
    return site;
}

// The function that calls the innermost function without flag, itself without flag; REC_NONE if
// there is none. *candidate: the function that is called.
static uint32_t caller_of(const struct search *search, uint32_t node, uint32_t *candidate)
{
    const struct code_location *locations = search->code->locations.items;
    *candidate = REC_NONE;
    for (; node != 0; node = search->recording->nodes[node].parent) {
        struct code_chain chain =
            code_index_node_chain(search->code, node, search->recording->nodes[node].frame);
        for (size_t i = 0; i < chain.count; i++) {
            const struct code_location *here = &locations[chain.locations[i]];
            if ((here->flags & (CODE_WRAPPER | CODE_CUT)) != 0 || here->function == *candidate) {
                continue;
            }
            if (*candidate != REC_NONE) {
                return here->function;
            }
            *candidate = here->function;
        }
    }
    return REC_NONE;
}

// Count a pair once.
static MUST_USE enum err
count_pair(struct map_u64 *pairs, uint32_t candidate, uint32_t other, uint32_t *count)
{
    const uint64_t key = map_u64_pair(candidate, other);
    if (map_u64_find(pairs, key) != NULL) {
        return ERR_OK;
    }
    (*count)++;
    return map_u64_put(pairs, key, 1);
}

// Count the sizes of a row's blocks. Recordings of other tools may have only their mean.
static MUST_USE enum err
count_sizes(struct search *search, uint32_t row, uint32_t id, struct candidate *candidate)
{
    const struct recording *recording = search->recording;
    const struct rec_row *costs = &recording->rows[row];
    bool has_sizes = false;
    const uint32_t *starts = &search->size_starts.items[row];
    for (uint32_t i = starts[0]; i < starts[1]; i++) {
        has_sizes = true;
        TRY(count_pair(&search->sizes, id, recording->size_buckets[i].bucket, &candidate->sizes));
    }
    if (!has_sizes && costs->allocations > 0) {
        const uint32_t bucket = rec_bucket_of(costs->allocated_bytes / costs->allocations);
        return count_pair(&search->sizes, id, bucket, &candidate->sizes);
    }
    return ERR_OK;
}

static MUST_USE enum err count_row(struct search *search, uint32_t row)
{
    const struct rec_row *costs = &search->recording->rows[row];
    uint32_t id;
    const uint32_t caller = caller_of(search, costs->node, &id);
    if (caller == REC_NONE) {
        return ERR_OK;
    }
    const struct call_site_location site =
        wrappers_call_site(search->recording, search->code, costs->node);
    struct candidate *candidate = &search->candidates.items[id];
    candidate->allocations += costs->allocations;
    candidate->allocated_bytes += costs->allocated_bytes;
    TRY(count_pair(&search->callers, id, caller, &candidate->callers));
    TRY(count_pair(&search->places, id, site.frame, &candidate->places));
    return count_sizes(search, row, id, candidate);
}

// Whether the name has a word of an allocation function.
static bool is_named_like_one(const char *name)
{
    static const char *const words[] = {"alloc",    "strdup", "strndup", "memdup",
                                        "memalign", "newmem", "getmem",  "get_mem"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcasestr(name, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_wrapper(const struct search *search, uint32_t function, int round)
{
    const struct candidate *candidate = &search->candidates.items[function];
    const struct code_function *known = &search->code->functions.items[function];
    const struct rec_totals *totals = &search->recording->totals;
    if (candidate->callers < NAMED_CALLERS || candidate->sizes < NAMED_SIZES) {
        return false;
    }
    if ((known->flags & CODE_UNKNOWN) == 0 &&
        is_named_like_one(string_table_get(&search->code->names, known->name))) {
        return true;
    }
    return round < ROUNDS_BY_CALLS && candidate->callers >= OTHER_CALLERS &&
           candidate->sizes >= OTHER_SIZES && candidate->places <= OTHER_PLACES &&
           (candidate->allocations >= totals->allocations / OTHER_SHARE ||
            candidate->allocated_bytes >= totals->allocated_bytes / OTHER_SHARE);
}

void wrappers_flag_locations(struct code_index *code)
{
    for (size_t i = 0; i < code->locations.len; i++) {
        struct code_location *location = &code->locations.items[i];
        location->flags |= code->functions.items[location->function].flags & CODE_WRAPPER;
    }
}

enum err wrappers_add(struct code_index *code, struct wrapper wrapper, struct wrapper_vec *out)
{
    code->functions.items[wrapper.function].flags |= CODE_WRAPPER;
    return wrapper_vec_push(out, wrapper);
}

// Add the chain of a frame again, with locations that are wrappers. `twins`: the twin of each
// location.
static MUST_USE enum err
add_twin_chain(struct code_index *code, uint32_t frame, struct map_u64 *twins)
{
    const uint32_t first = code->chain_first.items[frame];
    const uint32_t end = code->chain_first.items[frame + 1];
    for (uint32_t i = first; i < end; i++) {
        const uint32_t own = code->chain.items[i];
        uint32_t twin;
        TRY(map_u64_number(twins, own, code->locations.len, &twin));
        if (twin == code->locations.len) {
            struct code_location location = code->locations.items[own];
            location.flags |= CODE_WRAPPER;
            TRY(code_location_vec_push(&code->locations, location));
        }
        TRY(u32_vec_push(&code->chain, twin));
    }
    if (code->chain.len >= UINT32_MAX || code->locations.len >= UINT32_MAX) {
        return ERR_LIMIT;
    }
    return u32_vec_push(&code->chain_first, (uint32_t)code->chain.len);
}

struct python_search {
    const struct recording *recording;
    struct flag_vec frames;       // by frame: 1 if it is a function of Python
    struct flag_vec is_below;     // by node: 1 if it or a caller is one
    struct flag_vec is_above;     // by node: 1 if it or a callee is one
    struct flag_vec interpreters; // by module: 1 if it calls the outermost function of Python
    struct u32_vec twin_of;       // by frame: its second chain; 0: none yet
    struct map_u64 locations;     // location -> its twin
};

static void python_search_release(struct python_search *search)
{
    flag_vec_release(&search->frames);
    flag_vec_release(&search->is_below);
    flag_vec_release(&search->is_above);
    flag_vec_release(&search->interpreters);
    u32_vec_release(&search->twin_of);
    map_u64_release(&search->locations);
}

// Mark the frames of Python. *found: whether there are any.
static MUST_USE enum err mark_python(struct python_search *search, bool *found)
{
    static const char prefix[] = REC_PYTHON_MODULE;
    const struct recording *recording = search->recording;
    *found = false;
    TRY(flag_vec_resize(&search->frames, recording->frame_count));
    for (size_t i = 0; i < recording->frame_count; i++) {
        const uint32_t module = recording->frames[i].module;
        const char *path =
            module == REC_NONE ? "" : rec_string_get(recording, recording->modules[module].path);
        search->frames.items[i] = strncmp(path, prefix, sizeof(prefix) - 1) == 0;
        *found = *found || search->frames.items[i] != 0;
    }
    return ERR_OK;
}

// Mark the nodes above and below the functions of Python, and the interpreter's modules.
static MUST_USE enum err mark_sides_of_python(struct python_search *search)
{
    const struct recording *recording = search->recording;
    TRY(flag_vec_resize(&search->is_below, recording->node_count));
    TRY(flag_vec_resize(&search->is_above, recording->node_count));
    TRY(flag_vec_resize(&search->interpreters, recording->module_count));
    for (size_t i = 1; i < recording->node_count; i++) {
        const struct rec_node node = recording->nodes[i];
        const bool is_python = search->frames.items[node.frame] != 0;
        search->is_below.items[i] = is_python || search->is_below.items[node.parent] != 0;
        search->is_above.items[i] = is_python;
        if (is_python && node.parent != 0 && search->is_below.items[node.parent] == 0) {
            const uint32_t caller = recording->frames[recording->nodes[node.parent].frame].module;
            if (caller != REC_NONE) {
                search->interpreters.items[caller] = 1;
            }
        }
    }
    for (size_t i = recording->node_count; i-- > 1;) {
        search->is_above.items[recording->nodes[i].parent] |= search->is_above.items[i];
    }
    return ERR_OK;
}

// Whether the node is a native frame that a function of Python called, or one of the interpreter's
// on the way to it.
static bool is_internal_to_python(const struct python_search *search, size_t node)
{
    const uint32_t frame = search->recording->nodes[node].frame;
    const uint32_t module = search->recording->frames[frame].module;
    if (search->frames.items[frame] != 0) {
        return false;
    }
    return search->is_below.items[node] != 0 ||
           (search->is_above.items[node] != 0 && module != REC_NONE &&
            search->interpreters.items[module] != 0);
}

// Give the native frames around functions of Python their second chains.
static MUST_USE enum err find_around_python(const struct recording *recording,
                                            struct code_index *code)
{
    CLEANUP(python_search_release) struct python_search search = {.recording = recording};
    bool found;
    TRY(mark_python(&search, &found));
    if (!found) {
        return ERR_OK;
    }
    TRY(mark_sides_of_python(&search));
    TRY(u32_vec_resize(&search.twin_of, recording->frame_count));
    TRY(u32_vec_resize(&code->chain_of_node, recording->node_count));
    for (size_t i = 1; i < recording->node_count; i++) {
        const uint32_t frame = recording->nodes[i].frame;
        const bool is_internal = is_internal_to_python(&search, i);
        uint32_t *twin = &search.twin_of.items[frame];
        if (is_internal && *twin == 0) {
            *twin = (uint32_t)code->chain_first.len - 1;
            TRY(add_twin_chain(code, frame, &search.locations));
        }
        code->chain_of_node.items[i] = is_internal ? *twin : frame;
    }
    return ERR_OK;
}

// Look at all rows once. *found: whether a wrapper was found.
static MUST_USE enum err
search_once(struct search *search, int round, struct wrapper_vec *out, bool *found)
{
    map_u64_clear(&search->callers);
    map_u64_clear(&search->sizes);
    map_u64_clear(&search->places);
    candidate_vec_clear(&search->candidates);
    TRY(candidate_vec_resize(&search->candidates, search->code->functions.len));
    for (uint32_t row = 0; row < search->recording->row_count; row++) {
        TRY(count_row(search, row));
    }
    *found = false;
    for (uint32_t i = 0; i < search->candidates.len; i++) {
        if (is_wrapper(search, i, round)) {
            TRY(wrappers_add(search->code, (struct wrapper){.function = i}, out));
            *found = true;
        }
    }
    return ERR_OK;
}

// `cargo install` builds a program in the folder of libraries, too: what is in the folder of a main
// is the program's own.
static void free_own_crate(struct code_index *code)
{
    for (size_t i = 0; i < code->locations.len; i++) {
        const struct code_location *main = &code->locations.items[i];
        const char *name =
            string_table_get(&code->names, code->functions.items[main->function].name);
        const char *file = string_table_get(&code->names, main->file);
        const size_t len = strlen(name);
        if ((main->flags & CODE_LIBRARY) == 0 || len < 6 || strcmp(name + len - 6, "::main") != 0) {
            continue;
        }
        const size_t folder = library_folder_len(file);
        for (size_t k = 0; k < code->locations.len; k++) {
            struct code_location *location = &code->locations.items[k];
            const uint32_t by_name = code->functions.items[location->function].flags;
            if (strncmp(string_table_get(&code->names, location->file), file, folder) == 0) {
                location->flags &= ~(uint32_t)(CODE_LIBRARY | CODE_WRAPPER);
                location->flags |= by_name & CODE_WRAPPER;
            }
        }
    }
}

// Whether the module starts threads and programs.
static bool is_runtime(const char *path)
{
    static const char *const names[] = {"libstdc++.so", "libc++.so", "libc.so", "libc-2.",
                                        "libpthread",   "ld-linux",  "ld-musl-"};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

enum start {
    START_SEEN = 1 << 0,      // of a function: it is in a stack
    START_ELSEWHERE = 1 << 1, // and inside of the program's own
};

// Mark the functions without a name of the runtime that are in the stacks. `outer`, by node: 1 if
// only such functions and wrappers call it.
static MUST_USE enum err mark_starts(const struct recording *recording,
                                     const struct code_index *code,
                                     struct flag_vec *outer,
                                     struct flag_vec *starts)
{
    TRY(flag_vec_resize(outer, recording->node_count));
    TRY(flag_vec_resize(starts, code->functions.len));
    outer->items[0] = 1;
    for (uint32_t i = 1; i < recording->node_count; i++) {
        const struct rec_node *node = &recording->nodes[i];
        const uint32_t module = recording->frames[node->frame].module;
        const struct code_chain chain = code_index_node_chain(code, i, node->frame);
        const struct code_location *at = &code->locations.items[chain.locations[0]];
        const bool is_unnamed =
            (at->flags & CODE_UNKNOWN) != 0 && module != REC_NONE &&
            is_runtime(rec_string_get(recording, recording->modules[module].path));
        const bool is_outer = outer->items[node->parent] != 0;
        outer->items[i] = is_outer && (is_unnamed || (at->flags & CODE_WRAPPER) != 0);
        if (is_unnamed) {
            starts->items[at->function] |= is_outer ? START_SEEN : START_ELSEWHERE;
        }
    }
    return ERR_OK;
}

// Without its symbols, the code of libc and libstdc++ that starts threads has no names that
// is_wrapper_frame could know. It is where only such code and wrappers call it.
static MUST_USE enum err find_starts(const struct recording *recording, struct code_index *code)
{
    CLEANUP(flag_vec_release) struct flag_vec outer = {0};
    CLEANUP(flag_vec_release) struct flag_vec starts = {0};
    if (recording->node_count == 0) {
        return ERR_OK;
    }
    TRY(mark_starts(recording, code, &outer, &starts));
    for (size_t i = 0; i < code->locations.len; i++) {
        struct code_location *location = &code->locations.items[i];
        if (starts.items[location->function] == START_SEEN) {
            code->functions.items[location->function].flags |= CODE_WRAPPER;
            location->flags |= CODE_WRAPPER | CODE_LIBRARY;
        }
    }
    return ERR_OK;
}

enum err
wrappers_find(const struct recording *recording, struct code_index *code, struct wrapper_vec *out)
{
    CLEANUP(search_release) struct search search = {.recording = recording, .code = code};
    bool found = true;
    free_own_crate(code);
    TRY(find_starts(recording, code));
    TRY(find_around_python(recording, code));
    TRY(rec_row_starts(recording->size_buckets, recording->size_bucket_count,
                       sizeof(recording->size_buckets[0]), recording->row_count,
                       &search.size_starts));
    for (int round = 0; round < ROUNDS && found; round++) {
        TRY(search_once(&search, round, out, &found));
        if (found) {
            wrappers_flag_locations(code);
        }
    }
    return ERR_OK;
}
