// SPDX-License-Identifier: MIT
// stack_tree_throw: nodes that throw, catch, and run destructors on the way.
#include "stack_tree.h"

namespace
{

// Walks while it is being destroyed, in the middle of an unwinding too. The frames further in are
// removed from the stack by then, so it removes them from the shadow stack.
struct probing {
    struct stack_tree *tree;
    unsigned shadow_depth;
    explicit probing(struct stack_tree *in) : tree(in), shadow_depth(in->shadow_depth)
    {
    }
    ~probing()
    {
        tree->shadow_depth = shadow_depth;
        tree->probe(tree);
        TREE_LEAVE(tree);
    }
};

// Throw through all frames between here and the innermost catching().
__attribute__((noinline)) uint64_t throwing(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    probing guard(tree);
    uint64_t sum = tree_children(tree, depth);
    if (tree->catchers > 0 && (tree_random(tree) >> 8) % 4 == 0) {
        throw 1;
    }
    return sum;
}

// longjmp over destructors is undefined, so no jump leaves this frame.
__attribute__((noinline)) uint64_t catching(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    jmp_buf *outer = tree->escape;
    const unsigned shadow_depth = tree->shadow_depth;
    const unsigned catchers = tree->catchers;
    uint64_t sum = 0;
    tree->escape = nullptr;
    tree->catchers++;
    try {
        sum = throwing(tree, depth) + tree_children(tree, depth);
    } catch (int) {
        tree->shadow_depth = shadow_depth;
        tree->probe(tree);
    }
    tree->catchers = catchers;
    tree->escape = outer;
    TREE_LEAVE(tree);
    return sum;
}

} // namespace

extern "C" const tree_node NODES[] = {catching, throwing};
