// SPDX-License-Identifier: MIT
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
static struct cached_tree *find_tree(struct tree_cache *cache, uint64_t key)
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
    struct cached_tree *tree = find_tree(cache, key);
    mutex_unlock(&cache->mutex);
    return tree;
}

// Return a free entry if the cache has one and room for a tree of that many bytes, else NULL.
static struct cached_tree **find_room(struct tree_cache *cache, size_t bytes)
{
    struct cached_tree **room = NULL;
    for (size_t i = 0; i < TREE_CACHE_ENTRIES; i++) {
        struct cached_tree **entry = &cache->entries[i];
        room = *entry == NULL ? entry : room;
        bytes += *entry != NULL ? tree_view_bytes(&(*entry)->tree) : 0;
    }
    return bytes <= (size_t)TREE_CACHE_MIB << 20 ? room : NULL;
}

// Remove the least recently used tree. Return false if there is none.
static bool remove_oldest(struct tree_cache *cache)
{
    struct cached_tree **oldest = NULL;
    for (size_t i = 0; i < TREE_CACHE_ENTRIES; i++) {
        struct cached_tree **entry = &cache->entries[i];
        if (*entry != NULL && (oldest == NULL || (*entry)->used < (*oldest)->used)) {
            oldest = entry;
        }
    }
    if (oldest != NULL) {
        cached_tree_unref(*oldest);
        *oldest = NULL;
    }
    return oldest != NULL;
}

// Put `tree` into the cache and make room for it. The caller holds the mutex.
static void keep_tree(struct tree_cache *cache, struct cached_tree *tree)
{
    struct cached_tree **room;
    while ((room = find_room(cache, tree_view_bytes(&tree->tree))) == NULL) {
        if (!remove_oldest(cache)) {
            return; // too large on its own
        }
    }
    tree->used = ++cache->clock;
    *room = take_reference(tree);
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
    struct cached_tree *known = find_tree(cache, key);
    if (known == NULL) {
        keep_tree(cache, made);
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
