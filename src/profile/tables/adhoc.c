// SPDX-License-Identifier: MIT
// adhoc: see adhoc.h.
//
// A recording distinguishes stacks by address. Here stacks with equal locations are merged: all are
// collected and sorted by their frames, then equal neighbours are added up.
#include "profile/tables/adhoc.h"

#include "base/compiler.h"
#include "base/order.h"
#include "profile/tables/rss_breakdown.h"

void adhoc_release(struct adhoc_list *list)
{
    adhoc_event_vec_release(&list->events);
    u32_vec_release(&list->locations);
    u32_vec_release(&list->inlined);
}

static MUST_USE enum err add_adhoc_row(const struct profile *profile,
                                       const struct rec_adhoc *adhoc,
                                       enum adhoc_by by,
                                       struct adhoc_list *list)
{
    const size_t first = list->locations.len;
    TRY(rss_breakdown_stack(profile, adhoc->node, &list->locations, &list->inlined));
    const size_t count = list->locations.len - first;
    return adhoc_event_vec_push(
        &list->events,
        (struct adhoc_event){
            .name =
                count > 0 ? profile_location_function(profile, list->locations.items[first]) : "",
            .process = by == ADHOC_BY_PROCESS ? adhoc->process : REC_NONE,
            .events = adhoc->events,
            .weight = adhoc->weight,
            .first = first,
            .count = count});
}

// Compare by process and frames.
static int compare_places(const struct adhoc_list *list,
                          const struct adhoc_event *a,
                          const struct adhoc_event *b)
{
    if (a->process != b->process) {
        return order_u64(a->process, b->process);
    }
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const uint32_t left = list->locations.items[a->first + i];
        const uint32_t right = list->locations.items[b->first + i];
        if (left != right) {
            return order_u64(left, right);
        }
    }
    return order_u64(a->count, b->count);
}

// Order equal places as in the recording, by the position of their frames.
static int compare_for_merging(const void *left, const void *right, void *list)
{
    const struct adhoc_event *a = left;
    const struct adhoc_event *b = right;
    return compare_places(list, a, b) ?: order_u64(a->first, b->first);
}

static int compare_by_weight(const void *left, const void *right)
{
    const struct adhoc_event *a = left;
    const struct adhoc_event *b = right;
    return order_u64(b->weight, a->weight) ?: order_u64(a->first, b->first);
}

// Add up equal events, which are adjacent.
static void merge_equal_rows(struct adhoc_list *list)
{
    struct adhoc_event *events = list->events.items;
    size_t kept = 0;
    for (size_t i = 1; i < list->events.len; i++) {
        struct adhoc_event *to = events + kept;
        if (compare_places(list, to, events + i) != 0) {
            events[++kept] = events[i];
            continue;
        }
        to->events += events[i].events;
        if (__builtin_add_overflow(to->weight, events[i].weight, &to->weight)) {
            to->weight = UINT64_MAX;
        }
    }
    list->events.len = kept + 1;
}

enum err adhoc_collect(const struct profile *profile, enum adhoc_by by, struct adhoc_list *out)
{
    CLEANUP(adhoc_release) struct adhoc_list list = {0};
    for (size_t i = 0; i < profile->recording.adhoc_count; i++) {
        TRY(add_adhoc_row(profile, profile->recording.adhoc + i, by, &list));
    }
    if (list.events.len > 0) {
        adhoc_event_vec_sort_by(&list.events, compare_for_merging, &list);
        merge_equal_rows(&list);
        adhoc_event_vec_sort(&list.events, compare_by_weight);
    }
    *out = TAKE(list);
    return ERR_OK;
}
