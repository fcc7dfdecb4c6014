// SPDX-License-Identifier: MIT
// Tests of tree views, of caller and callee costs and of comparisons, on random stacks. The oracle
// spells stacks as texts and counts every answer again by comparing texts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/text/strbuf.h"
#include "profile/calls/tree_view.h"
#include "profile/tables/keyed_costs.h"
#include "profile/test_support/drawn_profile.h"
#include "recording/test_support/recording_text.h"

enum {
    ROUNDS = 60,
    ROWS_MAX = 60,
    DEPTH_MAX = 8,
    NAMES = 5,
    MANY_NAMES = 26, // above FEW_CHILDREN (call_tree.c)
    PATH_BYTES = 64,
};

// A stack with one letter for each function, outermost first. Equal letters are the same function.
struct model_row {
    char stack[DEPTH_MAX + 1];
    uint64_t allocations;
    uint64_t live_bytes;
};

struct model {
    struct model_row rows[ROWS_MAX];
    size_t count;
};

static uint64_t g_random;

static unsigned below(unsigned limit)
{
    g_random = g_random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(g_random >> 33) % limit;
}

static void make_model(struct model *model, unsigned names)
{
    model->count = 1 + below(ROWS_MAX);
    for (size_t i = 0; i < model->count; i++) {
        struct model_row *row = &model->rows[i];
        *row = (struct model_row){.allocations = 1 + below(9),
                                  .live_bytes = (uint64_t)below(3) * below(90)};
        unsigned depth = 1 + below(DEPTH_MAX);
        for (unsigned d = 0; d < depth; d++) {
            row->stack[d] = (char)('a' + below(names));
        }
    }
}

struct fixture {
    struct recording recording;
    struct profile *profile;
    struct selection selection;
    struct code_union code;
};

static void fixture_release(struct fixture *fixture)
{
    code_union_release(&fixture->code);
    selection_release(&fixture->selection);
    profile_close(fixture->profile);
    recording_release(&fixture->recording);
}

static void expect_ok(enum err problem)
{
    assert_int_equal(problem, ERR_OK);
}

// Draw the model as a recording. Lines differ between frames, so a function has several locations.
// `module` is the name of the functions' module.
static void draw(const struct model *model, const char *module, struct fixture *out)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    for (size_t i = 0; i < model->count; i++) {
        const struct model_row *row = &model->rows[i];
        for (size_t d = 0; row->stack[d] != '\0'; d++) {
            strbuf_printf(&text, "%s%s!%c(x.c:%zu)", d > 0 ? ";" : "", module, row->stack[d],
                          d % 3 + 1);
        }
        strbuf_printf(&text, " %lu %lu 0 0\n", (unsigned long)row->allocations,
                      (unsigned long)row->live_bytes);
    }
    struct err_info info = {0};
    if (recording_from_text(strbuf_text(&text), &out->recording, &info) != ERR_OK) {
        fail_msg("%s in:\n%s", info.text, strbuf_text(&text));
    }
    out->recording.meta.state = REC_STATE_FINISHED;
    expect_ok(profile_from_recording(&out->recording, NULL, NULL, &out->profile, &info));
    expect_ok(profile_select(out->profile, NULL, &out->selection, &info));
    expect_ok(code_union_build(out->profile, NULL, &out->code));
}

// Spell the stack as the tree has it: reversed for bottom-up, without repetitions if it collapses.
static void shape_stack(const char *stack, struct tree_view_spec spec, char *out)
{
    size_t len = strlen(stack);
    size_t kept = 0;
    for (size_t i = 0; i < len; i++) {
        size_t place = spec.direction == CALL_TREE_BOTTOM_UP ? len - 1 - i : i;
        char name = stack[place];
        if (!spec.collapses || kept == 0 || out[kept - 1] != name) {
            out[kept++] = name;
        }
    }
    out[kept] = '\0';
}

static void spell_node(const struct tree_view *tree, uint32_t node, char *out)
{
    size_t depth = tree->nodes.items[node].depth;
    out[depth] = '\0';
    for (size_t i = depth; i-- > 0; node = tree->nodes.items[node].parent) {
        out[i] = code_union_name(tree->code, tree->functions.items[node])[0];
    }
}

static void
expect_costs(const char *what, const char *path, const struct costs *got, uint64_t a, uint64_t b)
{
    if (costs_get(got, COST_ALLOCATIONS) != a || costs_get(got, COST_LEAKED_BYTES) != b) {
        fail_msg("%s of \"%s\": %lu and %lu, counted by hand %lu and %lu", what, path,
                 (unsigned long)costs_get(got, COST_ALLOCATIONS),
                 (unsigned long)costs_get(got, COST_LEAKED_BYTES), (unsigned long)a,
                 (unsigned long)b);
    }
}

// Sum up the rows whose shaped stack is `path` or begins with it.
static void count_path(const struct model *model,
                       const char *path,
                       struct tree_view_spec spec,
                       bool is_whole,
                       uint64_t sums[2])
{
    sums[0] = 0;
    sums[1] = 0;
    for (size_t i = 0; i < model->count; i++) {
        char shaped[DEPTH_MAX + 1];
        shape_stack(model->rows[i].stack, spec, shaped);
        bool counts =
            is_whole ? strcmp(shaped, path) == 0 : strncmp(shaped, path, strlen(path)) == 0;
        sums[0] += counts ? model->rows[i].allocations : 0;
        sums[1] += counts ? model->rows[i].live_bytes : 0;
    }
}

// Whether own costs take memory only where stacks go on, or would.
static void expect_own_costs_of_others(const struct tree_costs *costs,
                                       const struct call_tree_node_vec *nodes,
                                       const struct flag_vec *pruned)
{
    for (size_t i = 0; i < nodes->len; i++) {
        const bool is_leaf = nodes->items[i].first_child == REC_NONE && pruned->items[i] == 0;
        assert_true(!is_leaf || costs->own_of.items[i] == REC_NONE);
    }
}

static void check_side(const struct model *model,
                       const struct tree_view *tree,
                       enum side side,
                       struct tree_view_spec spec)
{
    for (uint32_t node = 0; node < tree->nodes.len; node++) {
        char path[PATH_BYTES];
        uint64_t sums[2];
        spell_node(tree, node, path);
        count_path(model, path, spec, false, sums);
        expect_costs("total", path, tree_costs_total(&tree->costs[side], node), sums[0], sums[1]);
        count_path(model, path, spec, true, sums);
        expect_costs("self", path, tree_costs_self(&tree->costs[side], node), sums[0], sums[1]);
    }
    expect_own_costs_of_others(&tree->costs[side], &tree->nodes, &tree->pruned);
}

static const struct tree_view_spec specs[] = {
    {CALL_TREE_TOP_DOWN, CALL_TREE_BY_FUNCTION, CALL_TREE_ALL, false, NULL, 0},
    {CALL_TREE_TOP_DOWN, CALL_TREE_BY_FUNCTION, CALL_TREE_ALL, true, NULL, 0},
    {CALL_TREE_BOTTOM_UP, CALL_TREE_BY_FUNCTION, CALL_TREE_ALL, false, NULL, 0},
    {CALL_TREE_BOTTOM_UP, CALL_TREE_BY_FUNCTION, CALL_TREE_ALL, true, NULL, 0},
};

// Check that siblings differ, and that every stack has its node.
static void
check_shape(const struct model *model, const struct tree_view *tree, struct tree_view_spec spec)
{
    size_t children = 0;
    for (uint32_t node = 0; node < tree->nodes.len; node++) {
        const struct call_tree_node *nodes = tree->nodes.items;
        for (uint32_t i = nodes[node].first_child; i != REC_NONE; i = nodes[i].next_sibling) {
            children++;
            assert_int_equal(nodes[i].parent, node);
            assert_true(i > node);
            for (uint32_t j = nodes[i].next_sibling; j != REC_NONE; j = nodes[j].next_sibling) {
                assert_int_not_equal(tree->functions.items[i], tree->functions.items[j]);
            }
        }
    }
    assert_int_equal(children, tree->nodes.len - 1);
    for (size_t i = 0; i < tree->row_nodes.len; i++) {
        char path[PATH_BYTES];
        uint64_t sums[2];
        spell_node(tree, tree->row_nodes.items[i], path);
        count_path(model, path, spec, true, sums);
        assert_true(sums[0] > 0);
    }
}

static void trees_agree_with_texts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model, seed % 2 == 0 ? NAMES : MANY_NAMES);
        CLEANUP(fixture_release) struct fixture fixture = {0};
        draw(&model, "app", &fixture);
        for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
            CLEANUP(tree_view_release) struct tree_view tree = {0};
            expect_ok(tree_view_build(&fixture.code, &fixture.selection, NULL, specs[i], &tree));
            check_side(&model, &tree, SIDE_NEW, specs[i]);
            check_shape(&model, &tree, specs[i]);
        }
    }
}

// Check that a location is in the recording that has the node, whichever recording named the
// function.
static void check_locations(const struct tree_view *tree)
{
    assert_int_equal(tree->sides.len, tree->nodes.len);
    for (uint32_t i = 1; i < tree->nodes.len; i++) {
        enum side side = (enum side)tree->sides.items[i];
        const struct profile *profile = tree->code->profiles[side];
        assert_true(tree->nodes.items[i].location < profile->code.locations.len);
        uint32_t own = tree_view_location(tree, i)->function;
        assert_int_equal(tree->code->ids[side].items[own], tree->functions.items[i]);
    }
}

static void two_recordings_are_compared_by_names(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model new;
        struct model old;
        g_random = seed;
        make_model(&new, NAMES);
        make_model(&old, NAMES + 2); // functions that the new one lacks
        CLEANUP(fixture_release) struct fixture new_fixture = {0};
        CLEANUP(fixture_release) struct fixture old_fixture = {0};
        draw(&new, "/new/build/app", &new_fixture);
        draw(&old, "/old/app", &old_fixture);
        CLEANUP(code_union_release) struct code_union both = {0};
        expect_ok(code_union_build(new_fixture.profile, old_fixture.profile, &both));
        for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
            CLEANUP(tree_view_release) struct tree_view tree = {0};
            expect_ok(tree_view_build(&both, &new_fixture.selection, &old_fixture.selection,
                                      specs[i], &tree));
            check_side(&new, &tree, SIDE_NEW, specs[i]);
            check_side(&old, &tree, SIDE_OLD, specs[i]);
            check_locations(&tree);
        }
    }
}

static void a_union_knows_functions_by_name_and_file(void **state)
{
    (void)state;
    CLEANUP(recording_release) struct recording new = {0};
    CLEANUP(recording_release) struct recording old = {0};
    CLEANUP(profile_closep) struct profile *new_profile = NULL;
    CLEANUP(profile_closep) struct profile *old_profile = NULL;
    CLEANUP(code_union_release) struct code_union both = {0};
    expect_ok(recording_from_text("/a/app!main;/a/app!load 1 1\n/a/lib!load 1 1\n", &new, NULL));
    expect_ok(recording_from_text("/b/app!main;/b/app!gone;/b/lib!load 1 1\n", &old, NULL));
    new.meta.state = REC_STATE_FINISHED;
    old.meta.state = REC_STATE_FINISHED;
    expect_ok(profile_from_recording(&new, NULL, NULL, &new_profile, NULL));
    expect_ok(profile_from_recording(&old, NULL, NULL, &old_profile, NULL));
    expect_ok(code_union_build(new_profile, old_profile, &both));
    assert_int_equal(both.origins.len, 4);
    static const struct {
        const char *name;
        const char *module;
    } wanted[] = {{"main", "/a/app"}, {"load", "/a/app"}, {"load", "/a/lib"}, {"gone", "/b/app"}};
    for (uint32_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_string_equal(code_union_name(&both, i), wanted[i].name);
        assert_string_equal(code_union_module(&both, i), wanted[i].module);
    }
    assert_int_equal(both.ids[SIDE_OLD].items[0], 0);
    assert_int_equal(both.ids[SIDE_OLD].items[1], 3);
    assert_int_equal(both.ids[SIDE_OLD].items[2], 2);
}

// Append the functions from the root to the node.
static void spell_path(const struct tree_view *tree, uint32_t node, struct strbuf *out)
{
    if (tree->nodes.items[node].depth > 1) {
        spell_path(tree, tree->nodes.items[node].parent, out);
        strbuf_append_char(out, '/');
    }
    strbuf_append_text(out, code_union_name(tree->code, tree->functions.items[node]));
}

// Append each node's path and allocations, how many frames it hides, and "*" if it was unfolded.
static void spell_sites(const struct tree_view *tree, struct strbuf *out)
{
    for (uint32_t i = 1; i < tree->nodes.len; i++) {
        const struct call_tree_node *node = &tree->nodes.items[i];
        spell_path(tree, i, out);
        strbuf_printf(out, " %llu",
                      (unsigned long long)costs_get(tree_costs_total(&tree->costs[SIDE_NEW], i),
                                                    COST_ALLOCATIONS));
        if (node->hidden > 0) {
            strbuf_printf(out, " +%u", node->hidden);
        }
        strbuf_append_text(out, node->unfolded_by != 0 ? " *, " : ", ");
    }
}

// The path number of the node that is spelled so.
static uint64_t path_of(const struct tree_view *tree, const char *spelled)
{
    for (uint32_t i = 1; i < tree->nodes.len; i++) {
        CLEANUP(strbuf_release) struct strbuf path = {0};
        spell_path(tree, i, &path);
        if (strcmp(strbuf_text(&path), spelled) == 0) {
            return tree->nodes.items[i].path;
        }
    }
    fail_msg("no node %s", spelled);
    return 0;
}

static void trees_of_sites_fold_and_unfold_wrapper_frames(void **state)
{
    (void)state;
    static const char text[] = "xmalloc 16 160\n"
                               "std::start;main;load;strdup 1 10\n"
                               "std::start;main;std::sort;std::less;load;std::grow;xmalloc 2 20\n"
                               "main;std::sort;std::grow 4 40\n"
                               "std::start;operator new 8 80\n";
    static const struct {
        enum call_tree_direction direction;
        const char *unfolded; // a node of the folded tree
        const char *wanted;
    } cases[] = {
        {CALL_TREE_TOP_DOWN, NULL,
         "main 7 +2, main/load 1 +1, main/std::sort 2 +1, main/std::sort/load 2 +2, "
         "xmalloc 16, operator new 8, "},
        {CALL_TREE_TOP_DOWN, "main/std::sort",
         "main 7 +2, main/load 1 +1, main/std::sort 2 *, main/std::sort/std::less 2 *, "
         "main/std::sort/std::less/load 2 +2, xmalloc 16, operator new 8, "},
        {CALL_TREE_TOP_DOWN, "main",
         "main 7, main/load 1 +1, main/std::sort 6 +1 *, main/std::sort/load 2 +2, "
         "xmalloc 16, main/std::sort/std::grow 4 *, operator new 8, "},
        {CALL_TREE_TOP_DOWN, "main/std::sort/load",
         "main 7 +2, main/load 1 +1, main/std::sort 2 +1, main/std::sort/load 2, "
         "xmalloc 16, main/std::sort/load/std::grow 2 *, main/std::sort/load/std::grow/xmalloc 2 "
         "*, "
         "operator new 8, "},
        {CALL_TREE_BOTTOM_UP, NULL,
         "xmalloc 16, load 3 +2, main 4 +2, operator new 8 +1, load/main 1 +1, load/std::sort 2 "
         "+1, "
         "load/std::sort/main 2 +1, "},
        {CALL_TREE_BOTTOM_UP, "load",
         "xmalloc 18 *, strdup 1 *, main 4 +2, operator new 8 +1, xmalloc/std::grow 2 *, "
         "xmalloc/std::grow/load 2, xmalloc/std::grow/load/std::sort 2 +1, "
         "xmalloc/std::grow/load/std::sort/main 2 +1, strdup/load 1, strdup/load/main 1 +1, "},
        {CALL_TREE_BOTTOM_UP, "load/std::sort",
         "xmalloc 16, load 3 +2, main 4 +2, operator new 8 +1, load/main 1 +1, load/std::less 2 *, "
         "load/std::less/std::sort 2 *, load/std::less/std::sort/main 2 +1, "},
        {CALL_TREE_BOTTOM_UP, "load/main",
         "xmalloc 16, load 3 +2, main 4 +2, operator new 8 +1, load/main 1, load/std::sort 2 +1, "
         "load/main/std::start 1 *, load/std::sort/main 2 +1, "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(code_union_release) struct code_union code = {0};
        CLEANUP(tree_view_release) struct tree_view folded = {0};
        CLEANUP(tree_view_release) struct tree_view tree = {0};
        CLEANUP(strbuf_release) struct strbuf found = {0};
        struct tree_view_spec spec = {.direction = cases[i].direction,
                                      .key = CALL_TREE_BY_FUNCTION,
                                      .frames = CALL_TREE_SITES};
        drawn_profile_open(text, &drawn);
        expect_ok(code_union_build(drawn.profile, NULL, &code));
        expect_ok(tree_view_build(&code, &drawn.selection, NULL, spec, &folded));
        uint64_t path = 0;
        if (cases[i].unfolded != NULL) {
            path = path_of(&folded, cases[i].unfolded);
            spec.unfolded = &path;
            spec.unfolded_count = 1;
        }
        expect_ok(tree_view_build(&code, &drawn.selection, NULL, spec, &tree));
        spell_sites(&tree, &found);
        assert_string_equal(strbuf_text(&found), cases[i].wanted);
    }
}

// In a comparison one path unfolds both recordings, also where recursion is collapsed.
static void one_path_unfolds_both_recordings(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile new = {0};
    CLEANUP(drawn_profile_release) struct drawn_profile old = {0};
    CLEANUP(code_union_release) struct code_union code = {0};
    CLEANUP(tree_view_release) struct tree_view folded = {0};
    CLEANUP(tree_view_release) struct tree_view tree = {0};
    CLEANUP(strbuf_release) struct strbuf found = {0};
    drawn_profile_open("main;walk;walk;std::a;std::b;leaf 1 10\n", &new);
    drawn_profile_open("other 1 1\nmain;walk;std::a;std::b;leaf 2 20\n", &old);
    struct tree_view_spec spec = {.direction = CALL_TREE_TOP_DOWN,
                                  .key = CALL_TREE_BY_FUNCTION,
                                  .frames = CALL_TREE_SITES,
                                  .collapses = true};
    expect_ok(code_union_build(new.profile, old.profile, &code));
    expect_ok(tree_view_build(&code, &new.selection, &old.selection, spec, &folded));
    const uint64_t path = path_of(&folded, "main/walk/std::a");
    spec.unfolded = &path;
    spec.unfolded_count = 1;
    expect_ok(tree_view_build(&code, &new.selection, &old.selection, spec, &tree));
    spell_sites(&tree, &found);
    assert_string_equal(strbuf_text(&found),
                        "main 1, main/walk 1, main/walk/std::a 1 *, main/walk/std::a/std::b 1 *, "
                        "main/walk/std::a/std::b/leaf 1, other 0, ");
    assert_int_equal(costs_get(tree_costs_total(&tree.costs[SIDE_OLD], 5), COST_ALLOCATIONS), 2);
}

static void pruned_trees_have_the_same_totals(void **state)
{
    (void)state;
    static const struct bottom_up_bounds bounds = {.whole_frames = 0, .share = 8};
    size_t pruned = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model, NAMES);
        CLEANUP(fixture_release) struct fixture fixture = {0};
        CLEANUP(bottom_up_tree_release) struct bottom_up_tree tree = {0};
        draw(&model, "app", &fixture);
        struct tree_view_spec spec = specs[2 + seed % 2];
        expect_ok(bottom_up_tree_build(&fixture.selection, spec.key, NULL, spec.collapses, &bounds,
                                       &tree));
        struct tree_view view = {.code = &fixture.code, .nodes = tree.tree.nodes};
        CLEANUP(u32_vec_release) struct u32_vec functions = {0};
        expect_ok(call_tree_functions(fixture.profile, &tree.tree, &functions));
        view.functions = functions;
        for (uint32_t node = 0; node < tree.tree.nodes.len; node++) {
            char path[PATH_BYTES];
            uint64_t sums[2];
            spell_node(&view, node, path);
            count_path(&model, path, spec, false, sums);
            expect_costs("total", path, tree_costs_total(&tree.tree.costs, node), sums[0], sums[1]);
            count_path(&model, path, spec, true, sums);
            expect_costs("self", path, tree_costs_self(&tree.tree.costs, node), sums[0], sums[1]);
            bool is_pruned = tree.pruned.items[node] != 0;
            assert_true(!is_pruned || tree.tree.nodes.items[node].first_child == REC_NONE);
            pruned += is_pruned;
        }
        expect_own_costs_of_others(&tree.tree.costs, &tree.tree.nodes, &tree.pruned);
    }
    assert_true(pruned > ROUNDS);
}

static void cut_nodes_lose_their_children_and_nothing_else(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model, NAMES);
        CLEANUP(fixture_release) struct fixture fixture = {0};
        CLEANUP(tree_view_release) struct tree_view tree = {0};
        draw(&model, "app", &fixture);
        CLEANUP(code_union_release) struct code_union both = {0};
        expect_ok(code_union_build(fixture.profile, fixture.profile, &both));
        expect_ok(tree_view_build(&both, &fixture.selection, &fixture.selection, specs[0], &tree));
        for (size_t i = 1; i < tree.pruned.len; i++) {
            tree.pruned.items[i] = below(6) == 0;
        }
        size_t before = tree.nodes.len;
        expect_ok(tree_view_cut(&tree));
        assert_true(tree.nodes.len <= before);
        check_side(&model, &tree, SIDE_NEW, specs[0]);
        check_side(&model, &tree, SIDE_OLD, specs[0]);
        for (size_t i = 0; i < tree.nodes.len; i++) {
            assert_true(tree.pruned.items[i] == 0 || tree.nodes.items[i].first_child == REC_NONE);
        }
        for (size_t i = 0; i < tree.row_nodes.len; i++) {
            assert_true(tree.row_nodes.items[i] < tree.nodes.len);
        }
    }
}

static bool is_picked(const struct u32_vec *picked, uint32_t node)
{
    for (size_t i = 0; i < picked->len; i++) {
        if (picked->items[i] == node) {
            return true;
        }
    }
    return false;
}

static void check_pick(const struct tree_view *tree, const struct tree_view_wish *wish)
{
    CLEANUP(u32_vec_release) struct u32_vec picked = {0};
    const struct call_tree_node *nodes = tree->nodes.items;
    bool is_complete;
    expect_ok(tree_view_pick(tree, wish, &picked, &is_complete));
    assert_int_equal(picked.items[0], wish->root);
    assert_true(picked.len <= wish->limit);
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 1; i < picked.len; i++) {
        uint32_t node = picked.items[i];
        uint64_t total = costs_get(tree_costs_total(&tree->costs[SIDE_NEW], node), wish->sort);
        assert_true(is_picked(&picked, nodes[node].parent));
        assert_true(total >= wish->minimum);
        assert_true(wish->levels == 0 ||
                    nodes[node].depth <= nodes[wish->root].depth + wish->levels);
        lowest = total < lowest ? total : lowest;
        // The preceding node is its parent, or is in the subtree of its preceding sibling.
        uint32_t left = picked.items[i - 1];
        while (nodes[left].depth > nodes[node].depth) {
            left = nodes[left].parent;
        }
        uint64_t left_total = costs_get(tree_costs_total(&tree->costs[SIDE_NEW], left), wish->sort);
        assert_true(left == nodes[node].parent || left_total > total ||
                    (left_total == total && left < node));
    }
    // Check that no node omitted by the limit is higher than a taken one.
    for (uint32_t node = 1; node < tree->nodes.len; node++) {
        uint64_t total = costs_get(tree_costs_total(&tree->costs[SIDE_NEW], node), wish->sort);
        bool is_due =
            is_picked(&picked, nodes[node].parent) && !is_picked(&picked, node) &&
            node != wish->root && total >= wish->minimum &&
            (wish->levels == 0 || nodes[node].depth <= nodes[wish->root].depth + wish->levels);
        assert_true(!is_due || (picked.len == wish->limit && total <= lowest && !is_complete));
    }
    assert_true(!is_complete || wish->limit >= picked.len);
}

static void the_highest_nodes_are_picked_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model, NAMES);
        CLEANUP(fixture_release) struct fixture fixture = {0};
        CLEANUP(tree_view_release) struct tree_view tree = {0};
        draw(&model, "app", &fixture);
        expect_ok(tree_view_build(&fixture.code, &fixture.selection, NULL, specs[seed % 4], &tree));
        for (int i = 0; i < 20; i++) {
            struct tree_view_wish wish = {.root = below((unsigned)tree.nodes.len),
                                          .levels = below(4),
                                          .minimum = (uint64_t)below(3) * below(12),
                                          .limit = 1 + below(60),
                                          .sort = COST_ALLOCATIONS};
            check_pick(&tree, &wish);
        }
    }
}

static void a_search_counts_each_stack_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model, NAMES);
        CLEANUP(fixture_release) struct fixture fixture = {0};
        CLEANUP(tree_view_release) struct tree_view tree = {0};
        CLEANUP(tree_matches_release) struct tree_matches matches = {0};
        CLEANUP(pattern_release) struct pattern pattern = {0};
        draw(&model, "mod", &fixture); // no letter in common with the functions a, b, c
        expect_ok(tree_view_build(&fixture.code, &fixture.selection, NULL, specs[seed % 4], &tree));
        expect_ok(pattern_init(&pattern, PATTERN_REGEX, "^[ab]$", "search", NULL));
        expect_ok(tree_view_search(&tree, &pattern, &matches, NULL));
        uint64_t allocations = 0;
        uint64_t leaked = 0;
        for (size_t i = 0; i < model.count; i++) {
            bool has = strpbrk(model.rows[i].stack, "ab") != NULL;
            allocations += has ? model.rows[i].allocations : 0;
            leaked += has ? model.rows[i].live_bytes : 0;
        }
        expect_costs("match", "[ab]", &matches.totals, allocations, leaked);
        size_t count = 0;
        for (uint32_t node = 1; node < tree.nodes.len; node++) {
            char path[PATH_BYTES];
            spell_node(&tree, node, path);
            bool is_match = strchr("ab", path[strlen(path) - 1]) != NULL;
            assert_int_equal(matches.flags.items[node], is_match);
            count += is_match;
        }
        assert_int_equal(matches.count, count);
    }
}

static void inclusive_costs_count_recursion_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model, NAMES);
        CLEANUP(fixture_release) struct fixture fixture = {0};
        CLEANUP(call_tree_release) struct call_tree tree = {0};
        CLEANUP(u32_vec_release) struct u32_vec keys = {0};
        CLEANUP(keyed_costs_release) struct keyed_costs costs = {0};
        draw(&model, "app", &fixture);
        expect_ok(call_tree_build(&fixture.selection, CALL_TREE_BY_LOCATION, false, &tree));
        expect_ok(call_tree_functions(fixture.profile, &tree, &keys));
        size_t count = fixture.profile->code.functions.len;
        expect_ok(keyed_costs_build(&tree, &keys, count, &costs));
        for (uint32_t function = 0; function < count; function++) {
            const char *name = code_union_name(&fixture.code, function);
            uint64_t self[2] = {0};
            uint64_t inclusive[2] = {0};
            for (size_t i = 0; i < model.count; i++) {
                const struct model_row *row = &model.rows[i];
                bool has = strchr(row->stack, name[0]) != NULL;
                bool ends = row->stack[strlen(row->stack) - 1] == name[0];
                self[0] += ends ? row->allocations : 0;
                self[1] += ends ? row->live_bytes : 0;
                inclusive[0] += has ? row->allocations : 0;
                inclusive[1] += has ? row->live_bytes : 0;
            }
            expect_costs("self", name, &costs.self.items[function], self[0], self[1]);
            expect_costs("inclusive", name, &costs.inclusive.items[function], inclusive[0],
                         inclusive[1]);
        }
    }
}

static void kept_trees_are_built_once(void **state)
{
    (void)state;
    static const enum call_tree_frames shapes[] = {CALL_TREE_ALL, CALL_TREE_SITES};
    struct model model;
    g_random = 1;
    make_model(&model, NAMES);
    CLEANUP(fixture_release) struct fixture fixture = {0};
    CLEANUP(kept_results_release) struct kept_results trees = {0};
    draw(&model, "app", &fixture);
    kept_results_init(&trees, SIZE_MAX);
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        CLEANUP(call_tree_release) struct call_tree own = {0};
        CLEANUP(call_tree_release) struct call_tree first = {0};
        CLEANUP(call_tree_release) struct call_tree second = {0};
        fixture.selection.trees = NULL;
        expect_ok(call_tree_build_frames(&fixture.selection, shapes[i], &own));
        fixture.selection.trees = &trees;
        expect_ok(call_tree_build_frames(&fixture.selection, shapes[i], &first));
        expect_ok(call_tree_build_frames(&fixture.selection, shapes[i], &second));
        assert_ptr_equal(first.nodes.items, second.nodes.items);
        assert_int_equal(first.nodes.len, own.nodes.len);
        assert_memory_equal(first.costs.totals.items, own.costs.totals.items,
                            own.costs.totals.len * sizeof(own.costs.totals.items[0]));
    }
}

static void filters_match_functions_files_and_modules(void **state)
{
    (void)state;
    static const struct {
        struct filter filter;
        uint64_t allocations;
    } cases[] = {
        {{.function_text = "LOAD"}, 3},
        {{.function_text = "nothing"}, 0},
        {{.function = "^load"}, 3},
        {{.function = "LOAD"}, 0},
        {{.file_text = "Src/App"}, 3},
        {{.file = "^/src/lib/.*\\.h$"}, 6},
        {{.module_text = "LIBX"}, 6},
        {{.module = "^/usr/lib/libx"}, 6},
        {{.function_text = "load", .file_text = "lib", .module_text = "libx"}, 2},
        {{.function_text = "main", .function = "^push$"}, 2},
    };
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    expect_ok(
        recording_from_text("/bin/app!main(/src/app.c:1);/bin/app!load_all(/src/app.c:2) 1 1\n"
                            "/bin/app!main(/src/app.c:1);/bin/app!load_one(/src/app.c:9);"
                            "/usr/lib/libx.so!push(/src/lib/x.h:3) 2 2\n"
                            "/usr/lib/libx.so!start;/usr/lib/libx.so!run(/src/lib/x.h:7) 4 4\n",
                            &recording, NULL));
    recording.meta.state = REC_STATE_FINISHED;
    expect_ok(profile_from_recording(&recording, NULL, NULL, &profile, NULL));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(selection_release) struct selection selection = {0};
        expect_ok(profile_select(profile, &cases[i].filter, &selection, NULL));
        uint64_t sum = 0;
        for (size_t row = 0; row < selection.rows.len; row++) {
            struct costs costs = selection_costs(&selection, row);
            sum += costs_get(&costs, COST_ALLOCATIONS);
        }
        if (sum != cases[i].allocations || selection.is_everything) {
            fail_msg("filter %zu selects %lu allocations, not %lu", i, (unsigned long)sum,
                     (unsigned long)cases[i].allocations);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_agree_with_texts),
        cmocka_unit_test(two_recordings_are_compared_by_names),
        cmocka_unit_test(a_union_knows_functions_by_name_and_file),
        cmocka_unit_test(trees_of_sites_fold_and_unfold_wrapper_frames),
        cmocka_unit_test(one_path_unfolds_both_recordings),
        cmocka_unit_test(pruned_trees_have_the_same_totals),
        cmocka_unit_test(cut_nodes_lose_their_children_and_nothing_else),
        cmocka_unit_test(the_highest_nodes_are_picked_in_order),
        cmocka_unit_test(a_search_counts_each_stack_once),
        cmocka_unit_test(inclusive_costs_count_recursion_once),
        cmocka_unit_test(kept_trees_are_built_once),
        cmocka_unit_test(filters_match_functions_files_and_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
