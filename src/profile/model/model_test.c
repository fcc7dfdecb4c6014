// SPDX-License-Identifier: MIT
// Tests of the profile against a naive model: random recordings, with every stack spelled as text.
// The model counts everything by comparing texts and has no ids, trees or maps.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/text/strbuf.h"
#include "profile/calls/bottom_up_tree.h"
#include "profile/calls/call_sites.h"
#include "profile/calls/stack_counts.h"
#include "profile/model/profile.h"
#include "profile/select/filter.h"
#include "recording/write/recording_builder.h"

enum {
    ROUNDS = 60,
    FRAMES = 24,
    THREADS = 5,
    ROWS_MAX = 120,
    DEPTH_MAX = 9,
    PARTS_MAX = DEPTH_MAX * 3,
};

// One location in the model: the text that a report shows.
struct part {
    char text[64];
    bool is_inlined;
};

struct model_row {
    struct part parts[PARTS_MAX]; // outermost first
    size_t part_count;
    uint32_t thread;
    uint32_t allocations;
    uint32_t live_bytes;
};

struct model {
    struct model_row rows[ROWS_MAX];
    size_t row_count;
};

struct random_frame {
    struct builder_symbol symbols[3]; // innermost first
    uint32_t symbol_count;
    uint32_t module;
    uint64_t offset;
};

static uint64_t g_random;

static uint32_t below(uint32_t limit)
{
    g_random = g_random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(g_random >> 33) % limit;
}

static void expect_ok(enum err problem)
{
    assert_int_equal(problem, ERR_OK);
}

static void make_frames(struct random_frame *frames)
{
    static const char *const functions[] = {"main", "load",   "grow",
                                            "spin", "strdup", "operator new(unsigned long)"};
    static const char *const files[] = {"a.c", "b.c"};
    for (uint32_t i = 0; i < FRAMES; i++) {
        frames[i] = (struct random_frame){
            .symbol_count = below(4), .module = below(3), .offset = (uint64_t)i * 16};
        for (uint32_t s = 0; s < frames[i].symbol_count; s++) {
            frames[i].symbols[s] = (struct builder_symbol){
                .function = functions[below(6)], .file = files[below(2)], .line = 1 + below(2)};
        }
    }
}

static void append_part(struct model_row *row, const struct random_frame *frame, uint32_t symbol)
{
    struct part *part = &row->parts[row->part_count++];
    part->is_inlined = symbol > 0 ? true : false;
    if (frame->symbol_count == 0) {
        part->is_inlined = false;
        (void)snprintf(part->text, sizeof(part->text), "module%u+0x%lx", frame->module,
                       (unsigned long)frame->offset);
        return;
    }
    uint32_t from_innermost = frame->symbol_count - 1 - symbol;
    const struct builder_symbol *known = &frame->symbols[from_innermost];
    (void)snprintf(part->text, sizeof(part->text), "%s %s:%u module%u", known->function,
                   known->file, known->line, frame->module);
}

// Make a random stack, for the builder by ids and for the model by texts.
static uint32_t
make_stack(struct recording_builder *b, const struct random_frame *frames, struct model_row *row)
{
    uint32_t node = 0;
    uint32_t depth = 1 + below(DEPTH_MAX);
    for (uint32_t i = 0; i < depth; i++) {
        uint32_t frame = below(below(2) == 0 ? 4 : FRAMES); // few outer frames: stacks share some
        expect_ok(recording_builder_node(b, node, frame, &node));
        uint32_t parts = frames[frame].symbol_count > 0 ? frames[frame].symbol_count : 1;
        for (uint32_t part = 0; part < parts; part++) {
            append_part(row, &frames[frame], part);
        }
    }
    return node;
}

static void make_tables(struct recording_builder *b, const struct random_frame *frames)
{
    for (uint32_t i = 0; i < 3; i++) {
        char path[16];
        uint32_t id;
        (void)snprintf(path, sizeof(path), "module%u", i);
        expect_ok(recording_builder_module(b, path, &id));
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t id;
        expect_ok(recording_builder_process(b, 100 + i, "app", &id));
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t id;
        expect_ok(recording_builder_thread(b, i % 2, 200 + i, "worker", &id));
    }
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint32_t id;
        expect_ok(recording_builder_frame(b, frames[i].module, frames[i].offset, frames[i].symbols,
                                          frames[i].symbol_count, &id));
    }
}

static void make_recording(struct model *model, struct recording *recording)
{
    struct random_frame frames[FRAMES];
    make_frames(frames);
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    expect_ok(recording_builder_init(&b));
    make_tables(&b, frames);
    model->row_count = 1 + below(ROWS_MAX);
    for (size_t i = 0; i < model->row_count; i++) {
        struct model_row *row = &model->rows[i];
        *row = (struct model_row){.thread = below(THREADS), .allocations = 1 + below(9)};
        row->live_bytes = below(2) * below(1000);
        uint32_t node = make_stack(&b, frames, row);
        uint32_t id;
        expect_ok(recording_builder_row(&b, row->thread, node, &id));
        b.rows.items[id].allocations += row->allocations;
        b.rows.items[id].frees += row->live_bytes > 0 ? 0 : row->allocations;
        b.rows.items[id].allocated_bytes += row->live_bytes;
    }
    recording_builder_sum(&b);
    expect_ok(recording_builder_finish(&b, recording));
    recording->meta.state = REC_STATE_FINISHED;
}

// The index of a row's call site among its parts, in the model.
static size_t model_site(const struct model_row *row)
{
    for (size_t i = row->part_count; i-- > 0;) {
        const char *text = row->parts[i].text;
        if (strncmp(text, "strdup ", 7) != 0 && strncmp(text, "operator new", 12) != 0) {
            return i;
        }
    }
    return row->part_count - 1;
}

static bool passes(const struct model_row *row, const struct filter *filter)
{
    bool has_function = filter->function == NULL;
    for (size_t i = 0; i < row->part_count && !has_function; i++) {
        size_t len = strlen(filter->function);
        has_function = strncmp(row->parts[i].text, filter->function, len) == 0;
    }
    return has_function && (filter->pid == 0 || 100 + row->thread % 2 == filter->pid);
}

static bool same_parts(const struct model_row *left, const struct part *right, size_t count)
{
    if (left->part_count < count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(left->parts[i].text, right[i].text) != 0 ||
            left->parts[i].is_inlined != right[i].is_inlined) {
            return false;
        }
    }
    return true;
}

// Spell the path of a tree node as texts, outermost first.
static size_t spell_path(const struct profile *profile,
                         const struct call_tree *tree,
                         uint32_t at,
                         struct part *parts)
{
    size_t count = tree->nodes.items[at].depth;
    for (size_t i = count; i-- > 0; at = tree->nodes.items[at].parent) {
        const struct call_tree_node *node = &tree->nodes.items[at];
        const struct code_location *place = profile_location_get(profile, node->location);
        parts[i].is_inlined = node->is_inlined;
        if ((place->flags & CODE_UNKNOWN) != 0) {
            (void)snprintf(parts[i].text, sizeof(parts[i].text), "%s+0x%lx",
                           profile_location_module(profile, node->location),
                           (unsigned long)place->offset);
        } else {
            (void)snprintf(parts[i].text, sizeof(parts[i].text), "%s %s:%u %s",
                           profile_location_function(profile, node->location),
                           profile_location_file(profile, node->location), place->line,
                           profile_location_module(profile, node->location));
        }
    }
    return count;
}

static void check_tree(const struct model *model,
                       const struct filter *filter,
                       const struct profile *profile,
                       const struct call_tree *tree)
{
    for (uint32_t node = 0; node < tree->nodes.len; node++) {
        struct part parts[PARTS_MAX];
        size_t count = spell_path(profile, tree, node, parts);
        uint64_t self = 0;
        uint64_t total = 0;
        for (size_t i = 0; i < model->row_count; i++) {
            const struct model_row *row = &model->rows[i];
            if (passes(row, filter) && same_parts(row, parts, count)) {
                total += row->allocations;
                self += row->part_count == count ? row->allocations : 0;
            }
        }
        assert_int_equal(costs_get(tree_costs_self(&tree->costs, node), COST_ALLOCATIONS), self);
        assert_int_equal(costs_get(tree_costs_total(&tree->costs, node), COST_ALLOCATIONS), total);
    }
}

static void check_sites(const struct model *model,
                        const struct filter *filter,
                        const struct profile *profile,
                        const struct call_sites *sites)
{
    uint64_t sum = 0;
    for (size_t s = 0; s < sites->sites.len; s++) {
        const struct call_site *site = &sites->sites.items[s];
        struct part parts[PARTS_MAX];
        size_t count =
            spell_path(profile, &sites->tree, sites->stacks.items[site->stack_first], parts);
        struct model_row first = {.part_count = count};
        memcpy(first.parts, parts, sizeof(parts));
        const char *wanted = first.parts[model_site(&first)].text;
        uint64_t allocations = 0;
        uint64_t leaked = 0;
        for (size_t i = 0; i < model->row_count; i++) {
            const struct model_row *row = &model->rows[i];
            if (passes(row, filter) && strcmp(row->parts[model_site(row)].text, wanted) == 0) {
                allocations += row->allocations;
                leaked += row->live_bytes;
            }
        }
        assert_int_equal(costs_get(&site->costs, COST_ALLOCATIONS), allocations);
        assert_int_equal(costs_get(&site->costs, COST_LEAKED_BYTES), leaked);
        sum += allocations;
    }
    assert_int_equal(costs_get(tree_costs_total(&sites->tree.costs, 0), COST_ALLOCATIONS), sum);
}

static void check_bottom_up(const struct selection *selection, const struct call_sites *sites)
{
    const enum call_tree_key keys[] = {CALL_TREE_BY_LOCATION, CALL_TREE_BY_FUNCTION};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        CLEANUP(bottom_up_tree_release) struct bottom_up_tree built = {0};
        expect_ok(bottom_up_tree_build(selection, keys[i], NULL, false, &bottom_up_default_bounds,
                                       &built));
        const struct call_tree tree = built.tree;
        for (size_t node = 0; node < tree.nodes.len; node++) {
            uint64_t children = costs_get(tree_costs_self(&tree.costs, node), COST_ALLOCATIONS);
            uint32_t child = tree.nodes.items[node].first_child;
            for (; child != REC_NONE; child = tree.nodes.items[child].next_sibling) {
                assert_true(child > node);
                children += costs_get(tree_costs_total(&tree.costs, child), COST_ALLOCATIONS);
            }
            assert_int_equal(costs_get(tree_costs_total(&tree.costs, node), COST_ALLOCATIONS),
                             children);
        }
        assert_int_equal(costs_get(tree_costs_total(&tree.costs, 0), COST_ALLOCATIONS),
                         costs_get(tree_costs_total(&sites->tree.costs, 0), COST_ALLOCATIONS));
    }
}

// Check that the sites built without stacks are equal.
static void check_sites_alone(const struct selection *selection, const struct call_sites *sites)
{
    CLEANUP(call_sites_release) struct call_sites alone = {0};
    expect_ok(call_sites_build_alone(selection, &alone));
    assert_int_equal(alone.sites.len, sites->sites.len);
    for (size_t i = 0; i < alone.sites.len; i++) {
        const struct call_site *got = &alone.sites.items[i];
        const struct call_site *want = &sites->sites.items[i];
        assert_int_equal(got->location, want->location);
        assert_int_equal(got->is_inlined, want->is_inlined);
        assert_int_equal(got->stack_count, 0);
        assert_memory_equal(&got->costs, &want->costs, sizeof(want->costs));
    }
}

// Check that stacks are counted as they are listed.
static void check_stack_counts(const struct selection *selection, const struct call_sites *sites)
{
    CLEANUP(stack_counts_release) struct stack_counts counts = {0};
    expect_ok(stack_counts_build(selection, &counts));
    for (size_t i = 0; i < sites->sites.len; i++) {
        const struct call_site *site = &sites->sites.items[i];
        assert_int_equal(stack_counts_all(&counts, i), site->stack_count);
        for (int cost = 0; cost < COST_COUNT; cost++) {
            uint32_t listed = 0;
            for (uint32_t s = 0; s < site->stack_count; s++) {
                const uint32_t stack = sites->stacks.items[site->stack_first + s];
                listed += costs_get(call_sites_costs(sites, stack), (enum cost)cost) > 0;
            }
            assert_int_equal(stack_counts_of(&counts, i, (enum cost)cost), listed);
        }
    }
}

static void answers_agree_with_counting_by_hand(void **state)
{
    (void)state;
    static const struct filter filters[] = {
        {0}, {.function = "load"}, {.pid = 101}, {.function = "grow", .pid = 100}};
    static struct model model;
    for (g_random = 1; g_random <= ROUNDS;) {
        uint64_t seed = g_random;
        CLEANUP(recording_release) struct recording recording = {0};
        make_recording(&model, &recording);
        CLEANUP(profile_closep) struct profile *profile = NULL;
        expect_ok(profile_from_recording(&recording, NULL, NULL, &profile, NULL));
        for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
            CLEANUP(selection_release) struct selection selection = {0};
            expect_ok(profile_select(profile, &filters[i], &selection, NULL));
            CLEANUP(call_sites_release) struct call_sites sites = {0};
            expect_ok(call_sites_build(&selection, &sites));
            call_tree_release(&sites.tree); // rebuild with costs
            expect_ok(call_tree_build(&selection, CALL_TREE_BY_LOCATION, false, &sites.tree));
            for (size_t s = 0; s < sites.stacks.len; s++) {
                const uint32_t stack = sites.stacks.items[s];
                assert_memory_equal(call_sites_costs(&sites, stack),
                                    tree_costs_self(&sites.tree.costs, stack),
                                    sizeof(struct costs));
            }
            check_tree(&model, &filters[i], profile, &sites.tree);
            check_sites(&model, &filters[i], profile, &sites);
            check_bottom_up(&selection, &sites);
            check_sites_alone(&selection, &sites);
            check_stack_counts(&selection, &sites);
        }
        g_random = seed + 1;
    }
}

// A program that is executed by several paths is the same code; libraries without a build-id are
// not.
static void modules_of_one_build_id_have_the_same_functions(void **state)
{
    (void)state;
    static const char *const paths[] = {"/usr/bin/git", "/usr/lib/git-core/git", "/lib/x",
                                        "/lib/y"};
    const struct builder_symbol symbol = {.function = "xmalloc", .file = "wrapper.c", .line = 10};
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    uint32_t id;
    expect_ok(recording_builder_init(&b));
    for (uint32_t i = 0; i < ARRAY_LEN(paths); i++) {
        expect_ok(recording_builder_module(&b, paths[i], &id));
        b.modules.items[id].build_id =
            i < 2 ? b.modules.items[0].path : b.modules.items[id].build_id;
        expect_ok(recording_builder_frame(&b, id, 0x40 + i, &symbol, 1, &id));
    }
    expect_ok(recording_builder_finish(&b, &recording));
    expect_ok(profile_from_recording(&recording, NULL, NULL, &profile, NULL));
    assert_int_equal(profile->code.functions.len, 3);
    assert_int_equal(profile->code.locations.len, 3);
    assert_string_equal(profile_location_module(profile, 0), "/usr/bin/git");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_agree_with_counting_by_hand),
        cmocka_unit_test(modules_of_one_build_id_have_the_same_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
