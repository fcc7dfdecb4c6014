// SPDX-License-Identifier: MIT
// stack_tree_nodes: one table of nodes, named by NODES, for each way that this file is compiled.
#include <stdarg.h>
#include <string.h>

#include "stack_tree.h"

#define NODE static __attribute__((noinline)) uint64_t

// Make the compiler believe that all of the memory is used.
static inline void use(void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

NODE plain(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    uint64_t sum = tree_children(tree, depth);
    TREE_LEAVE(tree);
    return sum;
}

// A frame of a size that is known only at run-time, so it needs a frame pointer.
NODE dynamic(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    char *memory = __builtin_alloca((tree_random(tree) >> 8) % 300 + 1);
    memory[0] = 1;
    use(memory);
    uint64_t sum = tree_children(tree, depth) + (uint64_t)memory[0];
    TREE_LEAVE(tree);
    return sum;
}

// A realigned stack.
NODE aligned(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    _Alignas(128) char memory[64];
    memory[0] = 2;
    use(memory);
    uint64_t sum = tree_children(tree, depth) + (uint64_t)memory[0];
    TREE_LEAVE(tree);
    return sum;
}

// Both, and arguments on the stack: gcc then keeps the address of the arguments (DRAP) and defines
// the CFA by an expression.
NODE aligned_dynamic(struct stack_tree *tree, unsigned depth, ...)
{
    TREE_ENTER(tree);
    _Alignas(64) char fixed[64];
    char *memory = __builtin_alloca((tree_random(tree) >> 8) % 200 + 1);
    va_list arguments;
    va_start(arguments, depth);
    fixed[0] = 3;
    memory[0] = 4;
    use(fixed);
    use(memory);
    uint64_t sum = tree_children(tree, depth);
    for (int i = 0; i < 8; i++) {
        sum += va_arg(arguments, uint64_t);
    }
    va_end(arguments);
    TREE_LEAVE(tree);
    return sum + (uint64_t)fixed[0] + (uint64_t)memory[0];
}

NODE many_arguments(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    uint64_t sum = aligned_dynamic(tree, depth, depth + 1ULL, depth + 2ULL, depth + 3ULL,
                                   depth + 4ULL, depth + 5ULL, depth + 6ULL, depth + 7ULL, 8ULL);
    TREE_LEAVE(tree);
    return sum;
}

// Keep every callee-saved register busy across its calls, rbp among them.
NODE busy(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    uint64_t a = tree_random(tree);
    uint64_t b = tree_random(tree);
    uint64_t c = tree_random(tree);
    uint64_t d = tree_random(tree);
    uint64_t e = tree_random(tree);
    uint64_t f = tree_random(tree);
    for (int i = 0; i < 2; i++) {
        a += tree_children(tree, depth > 0 ? depth - 1 : 0) ^ f;
        b ^= a + c;
        c += b << 3;
        d ^= c * 7;
        e += d;
        f ^= e;
    }
    TREE_LEAVE(tree);
    return a ^ b ^ c ^ d ^ e ^ f;
}

NODE large(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    char memory[20000];
    memory[0] = 5;
    use(memory);
    uint64_t sum = tree_children(tree, depth > 4 ? depth - 4 : 0) + (uint64_t)memory[0];
    TREE_LEAVE(tree);
    return sum;
}

// A path without any frame; compilers then build the frame late.
NODE shrink_wrapped(struct stack_tree *tree, unsigned depth)
{
    if (depth == 0) {
        return tree->random;
    }
    TREE_ENTER(tree);
    uint64_t kept = tree->random;
    uint64_t sum = tree_children(tree, depth) + plain(tree, depth - 1);
    TREE_LEAVE(tree);
    return sum + kept;
}

// Its frame is removed from the stack before its callee runs.
NODE tail_calling(struct stack_tree *tree, unsigned depth)
{
    return depth % 2 == 0 ? plain(tree, depth) : busy(tree, depth);
}

// Its callees may leave it by longjmp.
NODE jumped_to(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    jmp_buf here;
    jmp_buf *outer = tree->escape;
    volatile unsigned shadow_depth = tree->shadow_depth;
    volatile unsigned catchers = tree->catchers;
    uint64_t sum = 1;
    if (setjmp(here) == 0) {
        tree->escape = &here;
        sum += tree_children(tree, depth);
    } else {
        tree->shadow_depth = shadow_depth;
        tree->catchers = catchers;
        tree->probe(tree);
    }
    tree->escape = outer;
    TREE_LEAVE(tree);
    return sum;
}

NODE jumping(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    uint64_t sum = tree_children(tree, depth);
    if (tree->escape != NULL && (tree_random(tree) >> 8) % 2 == 0) {
        longjmp(*tree->escape, 1);
    }
    TREE_LEAVE(tree);
    return sum;
}

const tree_node NODES[] = {plain, dynamic,        aligned,      many_arguments, busy,
                           large, shrink_wrapped, tail_calling, jumped_to,      jumping};
