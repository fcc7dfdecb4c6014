// SPDX-License-Identifier: MIT
// stack_table: see the header.
#include "aggregate/tables/stack_table.h"

#include "base/hash.h"

static uint64_t hash_pair(uint64_t a, uint64_t b)
{
    return hash_mix(a * 0x9e3779b97f4a7c15ULL ^ b);
}

static uint64_t module_hash(const void *modules, uint32_t id)
{
    const struct rec_module *module = (const struct rec_module *)modules + id;
    return hash_pair(module->path, module->build_id);
}

static uint64_t frame_hash(const void *frames, uint32_t id)
{
    const struct rec_frame *frame = (const struct rec_frame *)frames + id;
    return hash_pair((uint64_t)frame->module << 8 | frame->flags, frame->offset);
}

static uint64_t node_hash(const void *nodes, uint32_t id)
{
    const struct rec_node *node = (const struct rec_node *)nodes + id;
    return hash_pair(node->parent, node->frame);
}

enum err stack_table_init(struct stack_table *table, struct string_table *strings)
{
    *table = (struct stack_table){.strings = strings};
    // The root is never searched, so it is in no index.
    return rec_node_vec_push(&table->nodes,
                             (struct rec_node){.parent = REC_NONE, .frame = REC_NONE});
}

void stack_table_release(struct stack_table *table)
{
    rec_module_vec_release(&table->modules);
    rec_frame_vec_release(&table->frames);
    rec_node_vec_release(&table->nodes);
    id_index_release(&table->module_index);
    id_index_release(&table->frame_index);
    id_index_release(&table->node_index);
}

static enum err intern_hexadecimal(struct string_table *strings, struct bytes raw, uint32_t *out_id)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * 256];
    size_t len = raw.len < 256 ? raw.len : 255;
    for (size_t i = 0; i < len; i++) {
        text[2 * i] = digits[raw.data[i] >> 4];
        text[2 * i + 1] = digits[raw.data[i] & 15];
    }
    return string_table_intern(strings, text, 2 * len, out_id);
}

enum err stack_table_module(struct stack_table *table,
                            struct bytes path,
                            struct bytes build_id,
                            uint32_t *out_module)
{
    struct rec_module wanted = {0};
    // A reader of zero-terminated text would not see the rest.
    TRY(string_table_intern_prefix(table->strings, path, &wanted.path));
    TRY(intern_hexadecimal(table->strings, build_id, &wanted.build_id));
    struct id_index *index = &table->module_index;
    uint64_t hash = module_hash(&wanted, 0);
    uint32_t id;
    for (size_t at = id_index_start(index, hash); (id = id_index_at(index, at)) != ID_NONE;
         at = id_index_next(index, at)) {
        const struct rec_module *module = table->modules.items + id;
        if (module->path == wanted.path && module->build_id == wanted.build_id) {
            *out_module = id;
            return ERR_OK;
        }
    }
    id = (uint32_t)table->modules.len;
    TRY(rec_module_vec_reserve(&table->modules, 1));
    TRY(id_index_add(index, hash, id, module_hash, table->modules.items));
    table->modules.items[table->modules.len++] = wanted;
    *out_module = id;
    return ERR_OK;
}

enum err stack_table_unnamed_executable(struct stack_table *table,
                                        struct bytes build_id,
                                        uint32_t *out_module)
{
    rec_string wanted = 0;
    TRY(intern_hexadecimal(table->strings, build_id, &wanted));
    for (size_t i = 0; i < table->modules.len && build_id.len > 0; i++) {
        if (table->modules.items[i].is_executable && table->modules.items[i].build_id == wanted) {
            *out_module = (uint32_t)i;
            return ERR_OK;
        }
    }
    TRY(stack_table_module(table, (struct bytes){0}, build_id, out_module));
    table->modules.items[*out_module].is_executable = 1;
    return ERR_OK;
}

// The index keeps its entry of the former path, too: what is found by that has another path.
enum err stack_table_name_module(struct stack_table *table, uint32_t module, struct bytes path)
{
    struct rec_module named = table->modules.items[module];
    if (named.path != 0) {
        return ERR_OK;
    }
    TRY(string_table_intern_prefix(table->strings, path, &named.path));
    TRY(id_index_add(&table->module_index, module_hash(&named, 0), module, module_hash,
                     table->modules.items));
    table->modules.items[module].path = named.path;
    return ERR_OK;
}

static uint32_t
find_frame(const struct stack_table *table, const struct rec_frame *wanted, uint64_t hash)
{
    const struct id_index *index = &table->frame_index;
    uint32_t id;
    for (size_t at = id_index_start(index, hash); (id = id_index_at(index, at)) != ID_NONE;
         at = id_index_next(index, at)) {
        const struct rec_frame *frame = table->frames.items + id;
        if (frame->module == wanted->module && frame->offset == wanted->offset &&
            frame->flags == wanted->flags) {
            return id;
        }
    }
    return ID_NONE;
}

static uint32_t
find_node(const struct stack_table *table, const struct rec_node *wanted, uint64_t hash)
{
    const struct id_index *index = &table->node_index;
    uint32_t id;
    for (size_t at = id_index_start(index, hash); (id = id_index_at(index, at)) != ID_NONE;
         at = id_index_next(index, at)) {
        const struct rec_node *node = table->nodes.items + id;
        if (node->parent == wanted->parent && node->frame == wanted->frame) {
            return id;
        }
    }
    return ID_NONE;
}

uint32_t stack_table_find_child(const struct stack_table *table,
                                uint32_t parent,
                                uint32_t module,
                                uint64_t offset,
                                uint32_t flags)
{
    const struct rec_frame frame = {.module = module, .flags = flags, .offset = offset};
    const uint32_t frame_id = find_frame(table, &frame, frame_hash(&frame, 0));
    if (frame_id == ID_NONE) {
        return REC_NONE;
    }
    const struct rec_node node = {.parent = parent, .frame = frame_id};
    const uint32_t id = find_node(table, &node, node_hash(&node, 0));
    return id != ID_NONE ? id : REC_NONE;
}

enum err stack_table_frame(struct stack_table *table,
                           uint32_t module,
                           uint64_t offset,
                           uint32_t flags,
                           uint32_t *out_frame)
{
    struct rec_frame wanted = {.module = module, .flags = flags, .offset = offset};
    struct id_index *index = &table->frame_index;
    const uint64_t hash = frame_hash(&wanted, 0);
    uint32_t id = find_frame(table, &wanted, hash);
    if (id != ID_NONE) {
        *out_frame = id;
        return ERR_OK;
    }
    if (table->frames.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    id = (uint32_t)table->frames.len;
    TRY(rec_frame_vec_reserve(&table->frames, 1));
    TRY(id_index_add(index, hash, id, frame_hash, table->frames.items));
    table->frames.items[table->frames.len++] = wanted;
    if (module != REC_NONE) {
        table->modules.items[module].frames++;
    }
    *out_frame = id;
    return ERR_OK;
}

enum err
stack_table_node(struct stack_table *table, uint32_t parent, uint32_t frame, uint32_t *out_node)
{
    struct rec_node wanted = {.parent = parent, .frame = frame};
    struct id_index *index = &table->node_index;
    const uint64_t hash = node_hash(&wanted, 0);
    uint32_t id = find_node(table, &wanted, hash);
    if (id != ID_NONE) {
        *out_node = id;
        return ERR_OK;
    }
    if (table->nodes.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    id = (uint32_t)table->nodes.len;
    TRY(rec_node_vec_reserve(&table->nodes, 1));
    TRY(id_index_add(index, hash, id, node_hash, table->nodes.items));
    table->nodes.items[table->nodes.len++] = wanted;
    *out_node = id;
    return ERR_OK;
}

enum err
stack_table_merged(struct stack_table *table, uint32_t parent, uint32_t leaf, uint32_t *out_node)
{
    uint32_t mark = 0;
    TRY(stack_table_frame(table, REC_NONE, REC_CUT_MERGED, REC_FRAME_CUT, &mark));
    if (table->nodes.items[parent].frame != mark) {
        TRY(stack_table_node(table, parent, mark, &parent));
    }
    if (leaf != REC_NONE && leaf != mark) {
        TRY(stack_table_node(table, parent, leaf, &parent));
    }
    *out_node = parent;
    return ERR_OK;
}

enum err stack_table_keep(struct stack_table *table, uint32_t *places)
{
    struct rec_node *nodes = table->nodes.items;
    const size_t count = table->nodes.len;
    id_index_clear(&table->node_index);
    table->nodes.len = 1; // the root
    places[0] = 0;
    for (size_t i = 1; i < count; i++) {
        if (places[i] == REC_NONE) {
            continue;
        }
        const uint32_t id = (uint32_t)table->nodes.len++;
        nodes[id] = (struct rec_node){.parent = places[nodes[i].parent], .frame = nodes[i].frame};
        places[i] = id;
        TRY(id_index_add(&table->node_index, node_hash(nodes, id), id, node_hash, nodes));
    }
    return ERR_OK;
}
