// SPDX-License-Identifier: MIT
#include "profile/calls/call_tree_children.h"

enum {
    FEW_CHILDREN = 8
};

enum err call_tree_children_begin(struct call_tree_children *children,
                                  const struct profile *profile,
                                  enum call_tree_key key)
{
    const struct code_index *code = &profile->code;
    const bool by_location = key == CALL_TREE_BY_LOCATION;
    children->key = key;
    TRY(u32_vec_resize(&children->newest,
                       (by_location ? code->locations.len : code->functions.len) * 2));
    return flag_vec_push(&children->is_indexed, 0);
}

// By function, inlined and called instances of one function are one node.
static uint32_t place_of(const struct call_tree_children *children,
                         const struct call_tree_node *child)
{
    const bool is_inlined = children->key == CALL_TREE_BY_LOCATION && child->is_inlined;
    return child->id << 1 | is_inlined;
}

static uint64_t key_of(const struct call_tree_children *children,
                       const struct call_tree_node *child)
{
    return map_u64_pair(child->parent, place_of(children, child));
}

static MUST_USE enum err index_children(struct call_tree_children *children,
                                        const struct call_tree_node *nodes,
                                        uint32_t parent)
{
    uint32_t child = nodes[parent].first_child;
    for (; child != REC_NONE; child = nodes[child].next_sibling) {
        TRY(map_u64_put(&children->indexed, key_of(children, &nodes[child]), child));
    }
    children->is_indexed.items[parent] = 1;
    return ERR_OK;
}

// Find a child among many. *out is REC_NONE if there is none, here and below.
static MUST_USE enum err find_indexed(struct call_tree_children *children,
                                      const struct call_tree_node *nodes,
                                      const struct call_tree_node *wanted,
                                      uint32_t *out)
{
    if (children->is_indexed.items[wanted->parent] == 0) {
        TRY(index_children(children, nodes, wanted->parent));
    }
    if (!map_u64_get(&children->indexed, key_of(children, wanted), out)) {
        *out = REC_NONE;
    }
    return ERR_OK;
}

static MUST_USE enum err search(struct call_tree_children *children,
                                const struct call_tree_node *nodes,
                                const struct call_tree_node *wanted,
                                uint32_t *out)
{
    const uint32_t place = place_of(children, wanted);
    uint32_t child = wanted->next_sibling;
    int count = 0;
    while (child != REC_NONE && place_of(children, &nodes[child]) != place) {
        if (++count > FEW_CHILDREN) {
            return find_indexed(children, nodes, wanted, out);
        }
        child = nodes[child].next_sibling;
    }
    *out = child;
    return ERR_OK;
}

static MUST_USE enum err find(struct call_tree_children *children,
                              const struct call_tree_node *nodes,
                              const struct call_tree_node *wanted,
                              uint32_t *out)
{
    const uint32_t newest = children->newest.items[place_of(children, wanted)];
    if (newest > wanted->parent && nodes[newest].parent != wanted->parent) {
        return search(children, nodes, wanted, out);
    }
    *out = newest > wanted->parent ? newest : REC_NONE;
    return ERR_OK;
}

static MUST_USE enum err add(struct call_tree_children *children,
                             struct call_tree_node_vec *nodes,
                             const struct call_tree_node *child,
                             uint32_t *out)
{
    const uint32_t at = (uint32_t)nodes->len;
    TRY(call_tree_node_vec_push(nodes, *child));
    TRY(flag_vec_push(&children->is_indexed, 0));
    nodes->items[child->parent].first_child = at;
    children->newest.items[place_of(children, child)] = at;
    *out = at;
    return children->is_indexed.items[child->parent] != 0
               ? map_u64_put(&children->indexed, key_of(children, child), at)
               : ERR_OK;
}

enum err call_tree_children_take(struct call_tree_children *children,
                                 struct call_tree_node_vec *nodes,
                                 const struct call_tree_node *wanted,
                                 uint32_t *out)
{
    if (wanted->id >= UINT32_MAX / 2 || nodes->len >= UINT32_MAX) {
        return ERR_LIMIT;
    }
    TRY(find(children, nodes->items, wanted, out));
    return *out != REC_NONE ? ERR_OK : add(children, nodes, wanted, out);
}

void call_tree_children_release(struct call_tree_children *children)
{
    u32_vec_release(&children->newest);
    map_u64_release(&children->indexed);
    flag_vec_release(&children->is_indexed);
}
