// SPDX-License-Identifier: MIT
// tree_cache: the trees that were asked for last, so that expanding a node takes no second build.
//
// Keyed by all that a tree's node ids depend on: generation, filter and shape. Holds a few trees,
// as long as they have no more nodes together than a bound; the least recently used goes first. A
// tree stays alive while a request uses it, cached or not, and so does its snapshot. Two requests
// that need the same new tree at once both build it, and the first one's is kept.
// Context: H; any thread. The mutex protects all of struct tree_cache.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/calls/tree_view.h"
#include "server/state/snapshot.h"

struct cached_tree {
    atomic_uint references;
    uint64_t key;
    uint64_t used;             // when last, in requests
    struct snapshot *snapshot; // owned reference: the tree borrows from it
    struct tree_view tree;     // owned
};

enum {
    TREE_CACHE_ENTRIES = 8,
    TREE_CACHE_NODES = 2500000,
};

struct tree_cache {
    pthread_mutex_t mutex;
    struct cached_tree *entries[TREE_CACHE_ENTRIES]; // owned references; NULL: free
    uint64_t clock;
};

#define TREE_CACHE_INIT                    \
    {                                      \
        .mutex = PTHREAD_MUTEX_INITIALIZER \
    }

// The tree under `key`, with a reference for the caller; NULL if there is none.
struct cached_tree *tree_cache_find(struct tree_cache *cache, uint64_t key);

// Takes over *tree (leaves it empty) and returns it with a reference for the caller, kept in the
// cache if it is not too large. NULL if there is no memory; then *tree is as it was.
struct cached_tree *tree_cache_add(struct tree_cache *cache,
                                   uint64_t key,
                                   struct snapshot *snapshot,
                                   struct tree_view *tree);

void cached_tree_unref(struct cached_tree *tree); // accepts NULL
void cached_tree_unrefp(struct cached_tree **tree);

void tree_cache_release(struct tree_cache *cache);
