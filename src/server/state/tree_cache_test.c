// SPDX-License-Identifier: MIT
// Tests of tree_cache: hits, evictions, and trees that stay alive while in use.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "server/state/tree_cache.h"

static void add_reference(struct snapshot *snapshot)
{
    atomic_init(&snapshot->references, 1);
}

static unsigned references(const struct snapshot *snapshot)
{
    return atomic_load_explicit(&snapshot->references, memory_order_relaxed); // only one thread
}

static struct tree_view tree_of(size_t nodes)
{
    struct tree_view tree = {0};
    assert_int_equal(call_tree_node_vec_resize(&tree.nodes, nodes), ERR_OK);
    return tree;
}

static void add(struct tree_cache *cache, struct snapshot *snapshot, uint64_t key, size_t nodes)
{
    struct tree_view tree = tree_of(nodes);
    struct cached_tree *cached = tree_cache_add(cache, key, snapshot, &tree);
    assert_non_null(cached);
    assert_int_equal(cached->tree.nodes.len, nodes);
    assert_null(tree.nodes.items);
    cached_tree_unref(cached);
}

static bool has(struct tree_cache *cache, uint64_t key)
{
    CLEANUP(cached_tree_unrefp) struct cached_tree *cached = tree_cache_find(cache, key);
    return cached != NULL;
}

static void the_least_recently_used_goes_first(void **state)
{
    (void)state;
    struct tree_cache cache = TREE_CACHE_INIT;
    struct snapshot snapshot = {0};
    add_reference(&snapshot);
    for (uint64_t key = 0; key < TREE_CACHE_ENTRIES; key++) {
        add(&cache, &snapshot, key, 1);
    }
    assert_true(has(&cache, 0)); // now the most recently used
    add(&cache, &snapshot, 100, 1);
    assert_true(has(&cache, 0));
    assert_false(has(&cache, 1));
    assert_true(has(&cache, 100));
    tree_cache_release(&cache);
    assert_int_equal(references(&snapshot), 1);
}

static void large_trees_push_out_others(void **state)
{
    (void)state;
    struct tree_cache cache = TREE_CACHE_INIT;
    struct snapshot snapshot = {0};
    add_reference(&snapshot);
    const size_t most = ((size_t)TREE_CACHE_MIB << 20) / sizeof(struct call_tree_node);
    add(&cache, &snapshot, 1, most / 2);
    add(&cache, &snapshot, 2, most / 4);
    add(&cache, &snapshot, 3, most / 2);
    assert_false(has(&cache, 1));
    assert_true(has(&cache, 2));
    assert_true(has(&cache, 3));
    add(&cache, &snapshot, 4, most + 1); // returned, but not kept
    assert_false(has(&cache, 4));
    tree_cache_release(&cache);
    assert_int_equal(references(&snapshot), 1);
}

static void a_tree_in_use_outlives_the_cache(void **state)
{
    (void)state;
    struct tree_cache cache = TREE_CACHE_INIT;
    struct snapshot snapshot = {0};
    add_reference(&snapshot);
    struct tree_view tree = tree_of(3);
    struct cached_tree *used = tree_cache_add(&cache, 7, &snapshot, &tree);
    assert_non_null(used);
    tree_cache_release(&cache);
    assert_int_equal(used->tree.nodes.len, 3);
    assert_int_equal(references(&snapshot), 2);
    cached_tree_unref(used);
    assert_int_equal(references(&snapshot), 1);
}

static void the_first_of_two_equal_trees_is_kept(void **state)
{
    (void)state;
    struct tree_cache cache = TREE_CACHE_INIT;
    struct snapshot snapshot = {0};
    add_reference(&snapshot);
    struct tree_view first = tree_of(3);
    struct tree_view second = tree_of(3);
    struct cached_tree *kept = tree_cache_add(&cache, 7, &snapshot, &first);
    struct cached_tree *given = tree_cache_add(&cache, 7, &snapshot, &second);
    assert_ptr_equal(kept, given);
    cached_tree_unref(kept);
    cached_tree_unref(given);
    tree_cache_release(&cache);
    assert_int_equal(references(&snapshot), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_recently_used_goes_first),
        cmocka_unit_test(large_trees_push_out_others),
        cmocka_unit_test(a_tree_in_use_outlives_the_cache),
        cmocka_unit_test(the_first_of_two_equal_trees_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
