// SPDX-License-Identifier: MIT
#include "profile/compare/diff.h"

#include <math.h>

#include "base/compiler.h"

#define ROUNDING 1e-12

struct diff_units diff_run_lengths(const struct selection *new, const struct selection *old)
{
    const struct selection *selections[SIDE_COUNT] = {[SIDE_NEW] = new, [SIDE_OLD] = old};
    struct diff_units units;
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        uint64_t length_ms = selection_length_ms(selections[side]);
        units.sides[side] = (double)(length_ms > 0 ? length_ms : 1) / 1000;
    }
    return units;
}

// The function of the call site of the stack that ends at `node`, REC_NONE for the root.
static uint32_t site_of(const struct tree_view *tree, uint32_t node)
{
    for (uint32_t at = node; at != 0; at = tree->nodes.items[at].parent) {
        if (!tree_view_is_wrapper(tree, at)) {
            return tree->functions.items[at];
        }
    }
    return node != 0 ? tree->functions.items[node] : REC_NONE;
}

// List entries in the order of the nodes of their functions, with costs and numbers of stacks.
// `places` receives the entry of each node, REC_NONE for nodes without costs of their own.
static MUST_USE enum err list_entries(struct diff *diff, struct u32_vec *places)
{
    const struct tree_view *tree = &diff->tree;
    size_t function_count = tree->code->origins.len;
    CLEANUP(u32_vec_release) struct u32_vec entry_of = {0}; // by function: entry + 1; no stack last
    TRY(u32_vec_resize(&entry_of, function_count + 1));
    TRY(u32_vec_resize(places, tree->nodes.len));
    for (uint32_t i = 0; i < tree->nodes.len; i++) {
        places->items[i] = REC_NONE;
        const struct costs *self[SIDE_COUNT] = {tree_costs_self(&tree->costs[SIDE_NEW], i),
                                                tree_costs_self(&tree->costs[SIDE_OLD], i)};
        if (!costs_any(self[SIDE_NEW]) && !costs_any(self[SIDE_OLD])) {
            continue;
        }
        uint32_t function = site_of(tree, i);
        uint32_t *known = &entry_of.items[function != REC_NONE ? function : function_count];
        if (*known == 0) {
            TRY(diff_entry_vec_push(&diff->entries, (struct diff_entry){.function = function}));
            *known = (uint32_t)diff->entries.len;
        }
        places->items[i] = *known - 1;
        struct diff_entry *entry = &diff->entries.items[*known - 1];
        entry->stack_count++;
        for (size_t side = 0; side < SIDE_COUNT; side++) {
            costs_add(&entry->sides[side], self[side]);
        }
    }
    return ERR_OK;
}

static MUST_USE enum err list_stacks(struct diff *diff, const struct u32_vec *places)
{
    uint32_t first = 0;
    for (size_t i = 0; i < diff->entries.len; i++) {
        diff->entries.items[i].stack_first = first;
        first += diff->entries.items[i].stack_count;
        diff->entries.items[i].stack_count = 0;
    }
    TRY(u32_vec_resize(&diff->stacks, first));
    for (uint32_t i = 0; i < places->len; i++) {
        if (places->items[i] != REC_NONE) {
            struct diff_entry *entry = &diff->entries.items[places->items[i]];
            diff->stacks.items[entry->stack_first + entry->stack_count++] = i;
        }
    }
    return ERR_OK;
}

enum err diff_build(const struct code_union *code,
                    const struct selection *new,
                    const struct selection *old,
                    struct diff_units units,
                    struct diff *out)
{
    static const struct tree_view_spec spec = {.direction = CALL_TREE_TOP_DOWN,
                                               .key = CALL_TREE_BY_FUNCTION};
    CLEANUP(diff_release)
    struct diff diff = {
        .code = code,
        .unknown = {[SIDE_NEW] = new->unknown, [SIDE_OLD] = old->unknown},
        .is_everything = {[SIDE_NEW] = new->is_everything, [SIDE_OLD] = old->is_everything}};
    CLEANUP(u32_vec_release) struct u32_vec places = {0};
    TRY(tree_view_build(code, new, old, spec, &diff.tree));
    TRY(summary_build(new, &diff.summaries[SIDE_NEW]));
    TRY(summary_build(old, &diff.summaries[SIDE_OLD]));
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        diff.units[side] = units.sides[side];
        diff.sampling[side] = sampling_of(&code->profiles[side]->recording);
    }
    TRY(list_entries(&diff, &places));
    TRY(list_stacks(&diff, &places));
    *out = TAKE(diff);
    return ERR_OK;
}

void diff_release(struct diff *diff)
{
    tree_view_release(&diff->tree);
    diff_entry_vec_release(&diff->entries);
    u32_vec_release(&diff->stacks);
}

bool diff_is_amount(enum cost cost)
{
    return cost != COST_PEAK_BYTES && cost != COST_PEAK_BLOCKS && cost != COST_OWN_PEAK_BYTES;
}

static bool is_unknown(const struct diff *diff, enum side side, enum cost cost)
{
    return (diff->unknown[side] >> cost & 1) != 0;
}

bool diff_knows(const struct diff *diff, enum cost cost)
{
    return !is_unknown(diff, SIDE_NEW, cost) && !is_unknown(diff, SIDE_OLD, cost);
}

// Return a cost of one side, divided by that side's unit if it is an amount.
static double
value_of(const struct diff *diff, enum side side, const struct costs *costs, enum cost cost)
{
    double value = (double)costs_get(costs, cost);
    return diff_is_amount(cost) ? value / diff->units[side] : value;
}

const char *diff_class_name(enum diff_class class)
{
    static const char *const names[DIFF_CLASS_COUNT] = {
        [DIFF_SAME] = "same",   [DIFF_NEW] = "new",       [DIFF_GONE] = "gone",
        [DIFF_GROWN] = "grown", [DIFF_SHRUNK] = "shrunk", [DIFF_UNKNOWN] = "unknown",
    };
    return class < DIFF_CLASS_COUNT ? names[class] : "same";
}

bool diff_has_errors(const struct diff *diff)
{
    return diff->sampling[SIDE_NEW].bytes != 0 || diff->sampling[SIDE_OLD].bytes != 0;
}

static double
error_of(const struct diff *diff, enum side side, const struct costs *costs, enum cost cost)
{
    const struct costs errors = sampling_errors(&diff->sampling[side], costs);
    return value_of(diff, side, &errors, cost);
}

static struct diff_change
change_of(const struct diff *diff, const struct costs *new, const struct costs *old, enum cost cost)
{
    struct diff_change change = {
        .old = is_unknown(diff, SIDE_OLD, cost) ? NAN : value_of(diff, SIDE_OLD, old, cost),
        .new = is_unknown(diff, SIDE_NEW, cost) ? NAN : value_of(diff, SIDE_NEW, new, cost)};
    if (!diff_knows(diff, cost)) {
        change.change = NAN;
        change.class = DIFF_UNKNOWN;
        return change;
    }
    change.old_error = error_of(diff, SIDE_OLD, old, cost);
    change.new_error = error_of(diff, SIDE_NEW, new, cost);
    change.change_error = sampling_change_error(change.new_error, change.old_error);
    change.change = change.new - change.old;
    double larger = change.new > change.old ? change.new : change.old;
    if (change.change < larger * ROUNDING && -change.change < larger * ROUNDING) {
        change.change = 0; // equal, except for the rounding of the division by the unit
    }
    if (change.change > 0) {
        change.class = costs_any(old) ? DIFF_GROWN : DIFF_NEW;
    } else if (change.change < 0) {
        change.class = costs_any(new) ? DIFF_SHRUNK : DIFF_GONE;
    }
    return change;
}

struct diff_change diff_entry_change(const struct diff *diff, size_t entry, enum cost cost)
{
    const struct diff_entry *at = &diff->entries.items[entry];
    return change_of(diff, &at->sides[SIDE_NEW], &at->sides[SIDE_OLD], cost);
}

struct diff_change diff_stack_change(const struct diff *diff, uint32_t node, enum cost cost)
{
    return change_of(diff, tree_costs_self(&diff->tree.costs[SIDE_NEW], node),
                     tree_costs_self(&diff->tree.costs[SIDE_OLD], node), cost);
}

// The error of one side's peak. Those of two estimates are independent; two bounds add up.
struct peak_error {
    double of_estimate;
    double bound;
};

// `part` is the error of the estimate of a part of the heap.
static struct peak_error peak_error_of(const struct diff *diff, enum side side, double part)
{
    const double whole = (double)diff->summaries[side].peak_order_error_bytes;
    const double of_part = diff->is_everything[side] ? 0 : part;
    return diff->sampling[side].bytes != 0 ? (struct peak_error){.of_estimate = of_part + whole}
                                           : (struct peak_error){.bound = whole};
}

struct diff_change diff_total_change(const struct diff *diff, enum cost cost)
{
    const struct summary *new = &diff->summaries[SIDE_NEW];
    const struct summary *old = &diff->summaries[SIDE_OLD];
    struct diff_change change = change_of(diff, &new->costs, &old->costs, cost);
    if (cost != COST_PEAK_BYTES || change.class == DIFF_UNKNOWN) {
        return change;
    }
    const struct peak_error of_new = peak_error_of(diff, SIDE_NEW, change.new_error);
    const struct peak_error of_old = peak_error_of(diff, SIDE_OLD, change.old_error);
    change.new_error = of_new.of_estimate + of_new.bound;
    change.old_error = of_old.of_estimate + of_old.bound;
    change.change_error =
        sampling_change_error(of_new.of_estimate, of_old.of_estimate) + of_new.bound + of_old.bound;
    return change;
}

struct scored {
    uint32_t id;
    double score;
};

DEFINE_VEC(scored_vec, struct scored);

static int compare_scored(const void *left, const void *right)
{
    const struct scored *a = left;
    const struct scored *b = right;
    if (a->score < b->score || a->score > b->score) {
        return a->score > b->score ? -1 : 1;
    }
    return a->id < b->id ? -1 : a->id > b->id;
}

static MUST_USE enum err
score_change(struct scored_vec *scored, uint32_t id, struct diff_change change)
{
    if (change.class == DIFF_SAME || change.class == DIFF_UNKNOWN) {
        return ERR_OK;
    }
    double size = change.change < 0 ? -change.change : change.change;
    return scored_vec_push(scored, (struct scored){.id = id, .score = size});
}

static MUST_USE enum err take_ids(struct scored_vec *scored, struct u32_vec *out)
{
    scored_vec_sort(scored, compare_scored);
    TRY(u32_vec_reserve(out, scored->len));
    for (size_t i = 0; i < scored->len; i++) {
        TRY(u32_vec_push(out, scored->items[i].id));
    }
    return ERR_OK;
}

enum err diff_ranked(const struct diff *diff, enum cost cost, struct u32_vec *out)
{
    CLEANUP(scored_vec_release) struct scored_vec scored = {0};
    for (uint32_t i = 0; i < diff->entries.len; i++) {
        TRY(score_change(&scored, i, diff_entry_change(diff, i, cost)));
    }
    return take_ids(&scored, out);
}

enum err
diff_ranked_stacks(const struct diff *diff, size_t entry, enum cost cost, struct u32_vec *out)
{
    const struct diff_entry *at = &diff->entries.items[entry];
    CLEANUP(scored_vec_release) struct scored_vec scored = {0};
    for (uint32_t i = 0; i < at->stack_count; i++) {
        uint32_t node = diff->stacks.items[at->stack_first + i];
        TRY(score_change(&scored, node, diff_stack_change(diff, node, cost)));
    }
    return take_ids(&scored, out);
}

bool diff_is_beyond(const struct diff *diff,
                    enum cost cost,
                    const struct diff_change *change,
                    double threshold)
{
    const double old = value_of(diff, SIDE_OLD, &diff->summaries[SIDE_OLD].costs, cost);
    const double sure = change->change - change->change_error;
    return sure > 0 && sure > threshold * old;
}
