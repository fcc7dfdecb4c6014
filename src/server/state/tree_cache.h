// SPDX-License-Identifier: MIT
// tree_cache: the most recently used trees, so that expanding a node needs no second build.
//
// The key covers everything that a tree's node ids depend on: generation, filter and shape. The
// cache holds a few trees up to a number of bytes, and evicts the least recently used one first. A
// tree and its snapshot live while a request uses them, cached or not. Two requests that need the
// same new tree at once both build it, and the first one's is kept.
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
    uint64_t used;             // time of the last use, in requests
    struct snapshot *snapshot; // owned reference: the tree borrows from it
    struct tree_view tree;     // owned
};

enum {
    TREE_CACHE_ENTRIES = 8,
    TREE_CACHE_MIB = 320, // a whole tree of 1.7 million nodes
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

// Find the tree under `key`, with a reference for the caller. Return NULL if there is none.
struct cached_tree *tree_cache_find(struct tree_cache *cache, uint64_t key);

// Move *tree into a new entry, leave it empty, and return the entry with a reference for the
// caller. The cache keeps it unless it is too large. If memory runs out, return NULL and leave
// *tree as it was.
struct cached_tree *tree_cache_add(struct tree_cache *cache,
                                   uint64_t key,
                                   struct snapshot *snapshot,
                                   struct tree_view *tree);

void cached_tree_unref(struct cached_tree *tree); // accepts NULL
void cached_tree_unrefp(struct cached_tree **tree);

void tree_cache_release(struct tree_cache *cache);
