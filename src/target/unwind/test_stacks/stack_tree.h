// SPDX-License-Identifier: MIT
// stack_tree: random call trees with frames of every shape, for the tests of the walk.
//
// A node is a function that calls a few random other nodes and, now and then, the probe. Nodes are
// compiled many times: by gcc and clang, at each level of optimisation, without frame pointers
// (stack_tree_nodes.c), and in C++ with exceptions (stack_tree_throw.cpp). Each node records its
// own truth: on entry it pushes its return address on a shadow stack. So every walk must contain
// these addresses in this order.
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TREE_SHADOW_MAX 20000u

struct stack_tree;

typedef uint64_t (*tree_node)(struct stack_tree *tree, unsigned depth);

struct stack_tree {
    uint64_t random;
    unsigned probes_left;
    void (*probe)(struct stack_tree *tree);
    void *context; // the probe's own
    tree_node const *nodes;
    size_t node_count;
    void (*pause)(struct stack_tree *tree); // called at random places; NULL: never
    jmp_buf *escape;                        // innermost setjmp, NULL if there is none
    unsigned catchers;                      // frames further out that would catch a throw
    unsigned shadow_depth;
    uint64_t shadow[TREE_SHADOW_MAX]; // outermost first
};

static inline uint64_t tree_random(struct stack_tree *tree)
{
    tree->random ^= tree->random << 13;
    tree->random ^= tree->random >> 7;
    tree->random ^= tree->random << 17;
    return tree->random;
}

// Expand this in the node's own frame.
#define TREE_ENTER(tree) \
    ((tree)->shadow[(tree)->shadow_depth++] = (uint64_t)__builtin_return_address(0))
#define TREE_LEAVE(tree) ((void)(tree)->shadow_depth--)

static inline tree_node tree_pick(struct stack_tree *tree)
{
    return tree->nodes[(tree_random(tree) >> 8) % tree->node_count];
}

// Call up to three children, the probe in between. The sum keeps the calls from being tail calls.
static inline __attribute__((always_inline)) uint64_t tree_children(struct stack_tree *tree,
                                                                    unsigned depth)
{
    uint64_t sum = 1;
    unsigned count = 1 + (unsigned)(tree_random(tree) >> 8) % 3;
    for (unsigned i = 0; i < count && tree->probes_left > 0; i++) {
        if (depth > 0 && (tree_random(tree) >> 8) % 8 != 0) {
            sum += tree_pick(tree)(tree, depth - 1);
        }
        if ((tree_random(tree) >> 8) % 2 == 0) {
            tree->probe(tree);
            sum += 3;
        }
        if (tree->pause != NULL && (tree_random(tree) >> 8) % 64 == 0) {
            tree->pause(tree);
        }
    }
    return sum;
}

#ifdef __cplusplus
}
#endif
