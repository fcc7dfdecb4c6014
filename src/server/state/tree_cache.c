// SPDX-License-Identifier: MIT
// tree_cache: see tree_cache.h.
#include "server/state/tree_cache.h"

#include <stdlib.h>

#include "host/os/mutex.h"

static struct cached_tree *take_reference(struct cached_tree *tree)
{
    // Relaxed: the cache has a reference, and its mutex is held.
    (void)atomic_fetch_add_explicit(&tree->references, 1, memory_order_relaxed);
    return tree;
}

void cached_tree_unref(struct cached_tree *tree)
{
    // Pairs with itself: the last release sees all uses by other threads.
    if (tree == NULL ||
        atomic_fetch_sub_explicit(&tree->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    tree_view_release(&tree->tree);
    snapshot_unref(tree->snapshot);
    free(tree);
}

void cached_tree_unrefp(struct cached_tree **tree)
{
    cached_tree_unref(*tree);
}

// Find the entry of `key`. The caller holds the mutex.
static struct cached_tree *find(struct tree_cache *cache, uint64_t key)
{
    for (size_t i = 0; i < TREE_CACHE_ENTRIES; i++) {
        struct cached_tree *tree = cache->entries[i];
        if (tree != NULL && tree->key == key) {
            tree->used = ++cache->clock;
            return take_reference(tree);
        }
    }
    return NULL;
}

struct cached_tree *tree_cache_find(struct tree_cache *cache, uint64_t key)
{
    mutex_lock(&cache->mutex);
    struct cached_tree *tree = find(cache, key);
    mutex_unlock(&cache->mutex);
    return tree;
}

// The entry to replace: a free one, or the least recently used.
static size_t find_victim(const struct tree_cache *cache)
{
    size_t victim = 0;
    for (size_t i = 0; i < TREE_CACHE_ENTRIES; i++) {
        if (cache->entries[i] == NULL) {
            return i;
        }
        if (cache->entries[i]->used < cache->entries[victim]->used) {
            victim = i;
        }
    }
    return victim;
}

static size_t count_nodes(const struct tree_cache *cache)
{
    size_t count = 0;
    for (size_t i = 0; i < TREE_CACHE_ENTRIES; i++) {
        count += cache->entries[i] != NULL ? cache->entries[i]->tree.nodes.len : 0;
    }
    return count;
}

static size_t find_oldest(const struct tree_cache *cache)
{
    size_t oldest = TREE_CACHE_ENTRIES;
    for (size_t i = 0; i < TREE_CACHE_ENTRIES; i++) {
        bool is_older =
            oldest == TREE_CACHE_ENTRIES ||
            (cache->entries[i] != NULL && cache->entries[i]->used < cache->entries[oldest]->used);
        if (cache->entries[i] != NULL && is_older) {
            oldest = i;
        }
    }
    return oldest;
}

// Put `tree` into the cache and make room for it. The caller holds the mutex.
static void keep(struct tree_cache *cache, struct cached_tree *tree)
{
    while (count_nodes(cache) + tree->tree.nodes.len > TREE_CACHE_NODES) {
        size_t oldest = find_oldest(cache);
        if (oldest == TREE_CACHE_ENTRIES) {
            return; // too large on its own
        }
        cached_tree_unref(cache->entries[oldest]);
        cache->entries[oldest] = NULL;
    }
    size_t victim = find_victim(cache);
    cached_tree_unref(cache->entries[victim]);
    tree->used = ++cache->clock;
    cache->entries[victim] = take_reference(tree);
}

struct cached_tree *tree_cache_add(struct tree_cache *cache,
                                   uint64_t key,
                                   struct snapshot *snapshot,
                                   struct tree_view *tree)
{
    struct cached_tree *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    atomic_init(&made->references, 1);
    made->key = key;
    made->snapshot = snapshot_ref(snapshot);
    made->tree = TAKE(*tree);
    mutex_lock(&cache->mutex);
    struct cached_tree *known = find(cache, key);
    if (known == NULL) {
        keep(cache, made);
    }
    mutex_unlock(&cache->mutex);
    if (known != NULL) {
        cached_tree_unref(made);
        return known;
    }
    return made;
}

void tree_cache_release(struct tree_cache *cache)
{
    for (size_t i = 0; i < TREE_CACHE_ENTRIES; i++) {
        cached_tree_unref(cache->entries[i]);
        cache->entries[i] = NULL;
    }
    (void)pthread_mutex_destroy(&cache->mutex); // cannot fail: no thread holds it
}
