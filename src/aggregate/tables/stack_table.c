// SPDX-License-Identifier: MIT
#include "aggregate/tables/stack_table.h"

#include "base/hash.h"

static uint64_t hash_pair(uint64_t a, uint64_t b)
{
    return hash_mix(a * 0x9e3779b97f4a7c15ULL ^ b);
}

static uint64_t frame_hash(const void *thing)
{
    const struct rec_frame *frame = thing;
    return hash_pair((uint64_t)frame->module << 8 | frame->flags, frame->offset);
}

static bool is_same_frame(const void *one, const void *other)
{
    const struct rec_frame *a = one;
    const struct rec_frame *b = other;
    return a->module == b->module && a->offset == b->offset && a->flags == b->flags;
}

static uint64_t node_hash(const void *thing)
{
    const struct rec_node *node = thing;
    return hash_pair(node->parent, node->frame);
}

static bool is_same_node(const void *one, const void *other)
{
    const struct rec_node *a = one;
    const struct rec_node *b = other;
    return a->parent == b->parent && a->frame == b->frame;
}

static const struct id_kind frame_kind = {frame_hash, is_same_frame, sizeof(struct rec_frame)};
static const struct id_kind node_kind = {node_hash, is_same_node, sizeof(struct rec_node)};

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
    map_u64_release(&table->module_index);
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
    const uint64_t key = map_u64_pair(wanted.path, wanted.build_id);
    TRY(rec_module_vec_reserve(&table->modules, 1));
    TRY(map_u64_number(&table->module_index, key, table->modules.len, out_module));
    if (*out_module == table->modules.len) {
        table->modules.items[table->modules.len++] = wanted;
    }
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

enum err stack_table_name_module(struct stack_table *table, uint32_t module, struct bytes path)
{
    struct rec_module named = table->modules.items[module];
    if (named.path != 0) {
        return ERR_OK;
    }
    TRY(string_table_intern_prefix(table->strings, path, &named.path));
    uint32_t first; // another module may have this name already
    TRY(map_u64_number(&table->module_index, map_u64_pair(named.path, named.build_id), module,
                       &first));
    (void)map_u64_remove(&table->module_index, map_u64_pair(0, named.build_id)); // it was unnamed
    table->modules.items[module].path = named.path;
    return ERR_OK;
}

uint32_t stack_table_find_child(const struct stack_table *table,
                                uint32_t parent,
                                uint32_t module,
                                uint64_t offset,
                                uint32_t flags)
{
    const struct rec_frame frame = {.module = module, .flags = flags, .offset = offset};
    const uint32_t frame_id =
        id_index_find(&table->frame_index, &frame_kind, table->frames.items, &frame);
    if (frame_id == ID_NONE) {
        return REC_NONE;
    }
    const struct rec_node node = {.parent = parent, .frame = frame_id};
    const uint32_t id = id_index_find(&table->node_index, &node_kind, table->nodes.items, &node);
    return id != ID_NONE ? id : REC_NONE;
}

enum err stack_table_frame(struct stack_table *table,
                           uint32_t module,
                           uint64_t offset,
                           uint32_t flags,
                           uint32_t *out_frame)
{
    const struct rec_frame wanted = {.module = module, .flags = flags, .offset = offset};
    TRY(rec_frame_vec_reserve(&table->frames, 1));
    TRY(id_index_number(&table->frame_index, &frame_kind, table->frames.items, &wanted,
                        table->frames.len, out_frame));
    if (*out_frame == table->frames.len) {
        table->frames.items[table->frames.len++] = wanted;
        if (module != REC_NONE) {
            table->modules.items[module].frames++;
        }
    }
    return ERR_OK;
}

enum err
stack_table_node(struct stack_table *table, uint32_t parent, uint32_t frame, uint32_t *out_node)
{
    const struct rec_node wanted = {.parent = parent, .frame = frame};
    TRY(rec_node_vec_reserve(&table->nodes, 1));
    const size_t next = table->nodes.len;
    if (parent + 1 == next) {
        // Children come after their parent, so the latest node has none: a search would only wait
        // for the memory of other nodes. Most nodes of a new stack are such children.
        TRY(id_index_append(&table->node_index, &node_kind, table->nodes.items, &wanted, next,
                            out_node));
    } else {
        TRY(id_index_number(&table->node_index, &node_kind, table->nodes.items, &wanted, next,
                            out_node));
    }
    if (*out_node == next) {
        table->nodes.items[table->nodes.len++] = wanted;
    }
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
        TRY(id_index_add(&table->node_index, &node_kind, nodes, nodes + id, id));
    }
    return ERR_OK;
}
