// SPDX-License-Identifier: MIT
#include "profile/findings/finding_changes.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/order.h"

// Whether findings of the kind are about one function. The others are about the whole program, and
// name a function only as an example.
static bool is_of_function(enum finding_kind kind)
{
    return kind == FINDING_PEAK || kind == FINDING_GROWTH || kind == FINDING_CHURN ||
           kind == FINDING_SPARSE;
}

// The cost that a finding's bytes are of, COST_COUNT if they are of none.
static enum cost cost_of(const struct finding *finding)
{
    switch (finding->kind) {
    case FINDING_PEAK:
        return COST_PEAK_BYTES;
    case FINDING_GROWTH:
    case FINDING_UNFREED:
        return COST_LEAKED_BYTES;
    case FINDING_CHURN:
        return strcmp(finding->look, "-T") == 0 ? COST_TEMPORARY_BYTES : COST_COUNT;
    case FINDING_RSS:
    case FINDING_SPARSE:
    case FINDING_HUGE:
    case FINDING_UNEVEN:
    case FINDING_UNSEEN:
    case FINDING_OOM:
    case FINDING_KIND_COUNT:
        break;
    }
    return COST_COUNT;
}

// Return the id in the union of the function that a finding is about.
static uint32_t function_of(const struct diff *diff, enum side side, const struct finding *finding)
{
    const struct code_index *code = &diff->code->profiles[side]->code;
    if (!is_of_function(finding->kind) || finding->location == REC_NONE) {
        return REC_NONE;
    }
    const uint32_t function = code->locations.items[finding->location].function;
    return diff->code->ids[side].items[function];
}

// Note a finding with that of the other side, if it has one alike.
static MUST_USE enum err note_change(const struct diff *diff,
                                     enum side side,
                                     const struct finding *finding,
                                     struct finding_change_vec *out)
{
    const uint32_t function = function_of(diff, side, finding);
    for (size_t i = 0; i < out->len; i++) {
        struct finding_change *change = &out->items[i];
        const struct finding *other = change->of[finding_change_side(change)];
        if (other->kind == finding->kind && strcmp(other->look, finding->look) == 0 &&
            change->function == function) {
            // Of two of one side the first is the more important one.
            change->of[side] = change->of[side] != NULL ? change->of[side] : finding;
            return ERR_OK;
        }
    }
    struct finding_change change = {.cost = cost_of(finding), .function = function};
    change.of[side] = finding;
    return finding_change_vec_push(out, change);
}

// Return the change of a cost of a function, or of the whole.
static struct diff_change
cost_change(const struct diff *diff, const struct finding_change *change, enum finding_kind kind)
{
    if (!is_of_function(kind)) {
        return diff_total_change(diff, change->cost);
    }
    for (size_t i = 0; i < diff->entries.len; i++) {
        if (diff->entries.items[i].function == change->function) {
            return diff_entry_change(diff, i, change->cost);
        }
    }
    return (struct diff_change){.old = NAN, .new = NAN, .change = NAN, .class = DIFF_UNKNOWN};
}

// Return the change of the findings' own bytes. A side without the finding is below its limits.
static struct diff_change bytes_change(const struct finding_change *change)
{
    double bytes[SIDE_COUNT];
    double errors[SIDE_COUNT];
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        const struct finding *finding = change->of[side];
        bytes[side] = finding != NULL ? (double)finding->bytes : NAN;
        errors[side] = finding != NULL ? (double)finding->bytes_error : 0;
    }
    return (struct diff_change){
        .old = bytes[SIDE_OLD],
        .new = bytes[SIDE_NEW],
        .change = bytes[SIDE_NEW] - bytes[SIDE_OLD],
        .old_error = errors[SIDE_OLD],
        .new_error = errors[SIDE_NEW],
        .change_error = sampling_change_error(errors[SIDE_NEW], errors[SIDE_OLD]),
    };
}

static enum diff_class class_of(const struct finding_change *change, double threshold)
{
    const struct finding *any = change->of[finding_change_side(change)];
    const struct diff_change *figure = &change->change;
    const bool is_one_sided = change->of[SIDE_OLD] == NULL || change->of[SIDE_NEW] == NULL;
    if (is_one_sided && (any->kind == FINDING_GROWTH || isnan(figure->change))) {
        return change->of[SIDE_OLD] == NULL ? DIFF_NEW : DIFF_GONE;
    }
    if (isnan(figure->change)) {
        return DIFF_UNKNOWN;
    }
    const double sure = fabs(figure->change) - figure->change_error;
    if (!(sure > 0) || sure <= threshold * figure->old) {
        return DIFF_SAME;
    }
    if (figure->change > 0) {
        return figure->old > 0 ? DIFF_GROWN : DIFF_NEW;
    }
    return figure->new > 0 ? DIFF_SHRUNK : DIFF_GONE;
}

static void judge_change(const struct diff *diff, double threshold, struct finding_change *change)
{
    const struct finding *any = change->of[finding_change_side(change)];
    change->change =
        change->cost != COST_COUNT ? cost_change(diff, change, any->kind) : bytes_change(change);
    change->class = class_of(change, threshold);
    change->weight = any->bytes > 0 ? (double)any->score / (double)any->bytes : 1;
}

// What ranks a change: its bytes, or all where one side has no figure.
static double size_of(const struct finding_change *change)
{
    const struct diff_change *figure = &change->change;
    const double bytes = isnan(figure->change) ? fmax(isnan(figure->old) ? 0 : figure->old,
                                                      isnan(figure->new) ? 0 : figure->new)
                                               : fabs(figure->change);
    return bytes * change->weight;
}

static int compare_changes(const void *left, const void *right)
{
    const struct finding_change *a = left;
    const struct finding_change *b = right;
    const int by_class = order_u64(a->class == DIFF_SAME, b->class == DIFF_SAME);
    const double of_a = size_of(a);
    const double of_b = size_of(b);
    if (by_class != 0 || of_a == of_b) {
        const struct finding *first = a->of[finding_change_side(a)];
        const struct finding *second = b->of[finding_change_side(b)];
        return by_class ?: order_u64(first->kind, second->kind)
                             ?: order_u64(a->function, b->function);
    }
    return of_a > of_b ? -1 : 1;
}

enum err finding_changes_build(const struct diff *diff,
                               const struct selection *new,
                               const struct selection *old,
                               double threshold,
                               struct finding_changes *out)
{
    CLEANUP(finding_changes_release) struct finding_changes changes = {0};
    TRY(findings_of(new, &diff->summaries[SIDE_NEW], &changes.findings[SIDE_NEW]));
    TRY(findings_of(old, &diff->summaries[SIDE_OLD], &changes.findings[SIDE_OLD]));
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        const struct finding_vec *findings = &changes.findings[side].items;
        for (size_t i = 0; i < findings->len; i++) {
            TRY(note_change(diff, (enum side)side, &findings->items[i], &changes.items));
        }
    }
    for (size_t i = 0; i < changes.items.len; i++) {
        judge_change(diff, threshold, &changes.items.items[i]);
    }
    finding_change_vec_sort(&changes.items, compare_changes);
    *out = TAKE(changes);
    return ERR_OK;
}

void finding_changes_release(struct finding_changes *changes)
{
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        findings_release(&changes->findings[side]);
    }
    finding_change_vec_release(&changes->items);
}
