// SPDX-License-Identifier: MIT
// Tests of queries about time, sizes and lifetimes. Random lists of blocks, each with birth, death
// and size, are summed up as a recorder would do it, and every answer is counted again from the
// list. One stack belongs to a child process, which may end before its parent.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/text/strbuf.h"
#include "profile/growth/growth.h"
#include "profile/select/time_range.h"
#include "profile/tables/histogram.h"
#include "profile/test_support/drawn_profile.h"
#include "profile/time/cut_timeline.h"
#include "profile/time/top_series.h"

enum {
    ROUNDS = 40,
    STACKS = 5,
    SITES = 4,
    BLOCKS_MAX = 60,
    SLICES = 12,
    SLICE_MS = 100, // of drawn recordings
    NEVER = SLICES,
    CHILD_STACK = 2,
};

// Two stacks have the same call site.
static const char *const stacks[STACKS] = {
    "app!main(a.c:1);app!zero(a.c:10)",
    "app!main(a.c:2);app!one(a.c:11)",
    "app!main(a.c:3);app!two(a.c:12)",
    "app!main(a.c:4);app!left(a.c:20);app!three(a.c:13)",
    "app!main(a.c:4);app!right(a.c:21);app!three(a.c:13)",
};
static const char *const sites[SITES] = {"zero", "one", "two", "three"};

static unsigned site_of(unsigned stack)
{
    return stack < SITES ? stack : SITES - 1;
}

struct block {
    unsigned stack;
    unsigned born;
    unsigned freed; // NEVER
    unsigned left;  // end of its process, or NEVER; never before the free
    unsigned bytes;
    unsigned lifetime_ms;
    bool is_temporary;
};

struct model {
    struct block blocks[BLOCKS_MAX];
    size_t count;
    unsigned left; // end of the child, or NEVER
};

static uint64_t g_random;

static unsigned below(unsigned limit)
{
    g_random = g_random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(g_random >> 33) % limit;
}

static void make_model(struct model *model)
{
    model->count = 1 + below(BLOCKS_MAX);
    model->left = below(4) == 0 ? NEVER : below(SLICES);
    for (size_t i = 0; i < model->count; i++) {
        struct block *block = &model->blocks[i];
        *block = (struct block){.stack = below(STACKS), .left = NEVER};
        block->left = block->stack == CHILD_STACK ? model->left : NEVER;
        const unsigned end = block->left < NEVER ? block->left + 1 : SLICES;
        block->born = below(end);
        block->bytes = block->stack == 0 ? 24 : 1 + below(300); // equal sizes in stack 0
        block->freed = below(3) == 0 ? NEVER : block->born + below(end - block->born);
        block->lifetime_ms = (block->freed - block->born) * SLICE_MS + below(SLICE_MS);
        block->is_temporary = block->freed == block->born && below(2) == 0;
    }
    // This block makes every slice exist.
    model->blocks[0] = (struct block){
        .stack = 1, .born = SLICES - 1, .freed = NEVER, .left = NEVER, .bytes = 1 + below(300)};
}

static bool is_live(const struct block *block, unsigned slice)
{
    return block->born <= slice && block->freed > slice && block->left > slice;
}

static uint64_t live_bytes(const struct model *model, unsigned slice)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < model->count; i++) {
        sum += is_live(&model->blocks[i], slice) ? model->blocks[i].bytes : 0;
    }
    return sum;
}

static void draw_cells(const struct model *model, unsigned stack, struct strbuf *out)
{
    for (unsigned slice = 0; slice < SLICES; slice++) {
        uint64_t sums[5] = {0};
        for (size_t i = 0; i < model->count; i++) {
            const struct block *block = &model->blocks[i];
            if (block->stack == stack) {
                sums[0] += block->born == slice;
                sums[1] += block->born == slice ? block->bytes : 0;
                sums[2] += block->freed == slice;
                sums[3] += block->freed == slice ? block->bytes : 0;
                sums[4] += block->born == slice && block->is_temporary;
            }
        }
        if (sums[0] + sums[2] > 0) {
            strbuf_printf(out, "@%u %lu %lu %lu %lu %lu\n", slice, sums[0], sums[1], sums[2],
                          sums[3], sums[4]);
        }
    }
}

static void draw_cohorts(const struct model *model, unsigned stack, struct strbuf *out)
{
    for (unsigned born = 0; born < SLICES; born++) {
        for (unsigned freed = born + 1; freed <= NEVER; freed++) {
            unsigned blocks = 0;
            unsigned bytes = 0;
            for (size_t i = 0; i < model->count; i++) {
                const struct block *block = &model->blocks[i];
                bool is_one = block->stack == stack && block->born == born && block->freed == freed;
                blocks += is_one;
                bytes += is_one ? block->bytes : 0;
            }
            if (blocks > 0 && freed == NEVER) {
                strbuf_printf(out, "cohort %u - %u %u\n", born, blocks, bytes);
            } else if (blocks > 0) {
                strbuf_printf(out, "cohort %u %u %u %u\n", born, freed, blocks, bytes);
            }
        }
    }
}

static void draw_buckets(const struct model *model, unsigned stack, bool sizes, struct strbuf *out)
{
    for (uint32_t bucket = 0; bucket < REC_BUCKET_COUNT; bucket++) {
        unsigned count = 0;
        unsigned bytes = 0;
        for (size_t i = 0; i < model->count; i++) {
            const struct block *block = &model->blocks[i];
            uint64_t value = sizes ? block->bytes : block->lifetime_ms;
            bool counts = block->stack == stack && rec_bucket_of(value) == bucket &&
                          (sizes || block->freed != NEVER);
            count += counts;
            bytes += counts ? block->bytes : 0;
        }
        if (count > 0) {
            strbuf_printf(out, "%s %u %u %u\n", sizes ? "size" : "life", bucket, count, bytes);
        }
    }
}

static void draw_stack(const struct model *model, unsigned stack, struct strbuf *out)
{
    uint64_t sums[6] = {0};
    for (size_t i = 0; i < model->count; i++) {
        const struct block *block = &model->blocks[i];
        if (block->stack == stack) {
            sums[0]++;
            sums[1] += block->bytes;
            sums[2] += block->freed != NEVER;
            sums[3] += block->freed != NEVER ? block->bytes : 0;
            sums[4] += block->is_temporary;
            sums[5] += block->is_temporary ? block->bytes : 0;
        }
    }
    if (sums[0] == 0) {
        return;
    }
    strbuf_printf(out, "%s %lu %lu %lu %lu %lu %lu\n", stacks[stack], sums[0], sums[1], sums[2],
                  sums[3], sums[4], sums[5]);
    draw_cells(model, stack, out);
    draw_buckets(model, stack, true, out);
    draw_buckets(model, stack, false, out);
    draw_cohorts(model, stack, out);
}

static void draw(const struct model *model, struct drawn_profile *out)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    strbuf_append_text(&text, "process parent\n");
    for (unsigned stack = 0; stack < STACKS; stack++) {
        if (stack != CHILD_STACK) {
            draw_stack(model, stack, &text);
        }
    }
    strbuf_append_text(&text, "process child\n");
    if (model->left < NEVER) {
        strbuf_printf(&text, "left %u\n", model->left * SLICE_MS + 1);
    }
    draw_stack(model, CHILD_STACK, &text);
    drawn_profile_open(strbuf_text(&text), out);
    assert_int_equal(out->recording.slice_count, SLICES);
    assert_int_equal(out->recording.slice_ms, SLICE_MS);
}

static void expect_equal(const char *what, unsigned where, uint64_t got, uint64_t wanted)
{
    if (got != wanted) {
        fail_msg("%s %u: %lu, counted by hand %lu (seed %lu)", what, where, (unsigned long)got,
                 (unsigned long)wanted, (unsigned long)g_random);
    }
}

// The class of a block in slices from .. to - 1; 0 if it was allocated later or ended before.
static unsigned class_of(const struct block *block, unsigned from, unsigned to)
{
    if (block->born >= to || block->freed < from || block->left < from) {
        return 0;
    }
    if (block->born >= from) {
        return block->freed < to ? BLOCKS_IN_IN : BLOCKS_IN_OUT;
    }
    return block->freed < to ? BLOCKS_OUT_IN : BLOCKS_OUT_OUT;
}

static unsigned find_moment(const struct model *model, unsigned from, unsigned to)
{
    unsigned moment = from;
    for (unsigned slice = from; slice < to; slice++) {
        moment = live_bytes(model, slice) > live_bytes(model, moment) ? slice : moment;
    }
    return moment;
}

static struct costs
count_range(const struct model *model, unsigned from, unsigned to, unsigned classes)
{
    struct costs costs = {0};
    unsigned moment = find_moment(model, from, to);
    for (size_t i = 0; i < model->count; i++) {
        const struct block *block = &model->blocks[i];
        unsigned class = class_of(block, from, to);
        if ((class & classes) == 0) {
            continue;
        }
        bool is_freed = class == BLOCKS_IN_IN || class == BLOCKS_OUT_IN;
        costs.values[COST_ALLOCATIONS]++;
        costs.values[COST_ALLOCATED_BYTES] += block->bytes;
        costs.values[COST_FREES] += is_freed;
        costs.values[COST_FREED_BYTES] += is_freed ? block->bytes : 0;
        costs.values[COST_LEAKED_ALLOCATIONS] += !is_freed;
        costs.values[COST_LEAKED_BYTES] += is_freed ? 0 : block->bytes;
        costs.values[COST_TEMPORARY] += block->is_temporary && class == BLOCKS_IN_IN;
        costs.values[COST_PEAK_BLOCKS] += is_live(block, moment);
        costs.values[COST_PEAK_BYTES] += is_live(block, moment) ? block->bytes : 0;
    }
    return costs;
}

static void a_time_range_counts_blocks_by_birth_and_death(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model);
        CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
        draw(&model, &fixture);
        for (int i = 0; i < 40; i++) {
            unsigned from = below(SLICES);
            unsigned to = from + 1 + below(SLICES - from);
            unsigned classes = 1 + below(15);
            struct filter filter = {.has_range = true};
            // Random times within the first and the last slice.
            filter.range =
                time_range_covering(&fixture.recording, from * SLICE_MS + below(SLICE_MS),
                                    to * SLICE_MS - below(SLICE_MS), classes);
            CLEANUP(selection_release) struct selection selection = {0};
            assert_int_equal(profile_select(fixture.profile, &filter, &selection, NULL), ERR_OK);
            struct costs wanted = count_range(&model, from, to, classes);
            struct costs got = {0};
            for (size_t row = 0; row < selection.rows.len; row++) {
                struct costs costs = selection_costs(&selection, row);
                costs_add(&got, &costs);
            }
            for (unsigned cost = 0; cost < COST_COUNT; cost++) {
                expect_equal(cost_get_info((enum cost)cost)->key, from * 100 + to, got.values[cost],
                             wanted.values[cost]);
            }
        }
    }
}

// Count what the blocks of a range did in one slice of it, and their live bytes at its end.
static struct timeline_point
count_slice(const struct model *model, struct time_range range, unsigned slice)
{
    struct timeline_point point = {0};
    for (size_t i = 0; i < model->count; i++) {
        const struct block *block = &model->blocks[i];
        if ((class_of(block, range.first, range.end) & range.classes) == 0) {
            continue;
        }
        bool is_born = block->born == slice;
        bool is_freed = block->freed == slice;
        point.allocations += is_born;
        point.allocated_bytes += is_born ? block->bytes : 0;
        point.frees += is_freed;
        point.freed_bytes += is_freed ? block->bytes : 0;
        point.temporary += is_born && block->is_temporary;
        point.left_bytes += block->left == slice && block->freed == NEVER ? block->bytes : 0;
        point.live_bytes += is_live(block, slice) ? block->bytes : 0;
    }
    return point;
}

static void build_cut(const struct drawn_profile *fixture,
                      const struct filter *filter,
                      struct cut_timeline *out)
{
    CLEANUP(selection_release) struct selection selection = {0};
    assert_int_equal(profile_select(fixture->profile, filter, &selection, NULL), ERR_OK);
    assert_true(cut_timeline_is_known(&selection));
    assert_int_equal(cut_timeline_build(&selection, out), ERR_OK);
    assert_int_equal(out->points.len, SLICES);
}

static void a_timeline_counts_the_blocks_of_its_range(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model);
        CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
        draw(&model, &fixture);
        for (int i = 0; i < 40; i++) {
            uint32_t first = below(SLICES);
            uint32_t end = first + 1 + below(SLICES - first);
            struct filter filter = {.has_range = true, .range = {first, end, 1 + below(15)}};
            CLEANUP(cut_timeline_release) struct cut_timeline timeline = {0};
            build_cut(&fixture, &filter, &timeline);
            assert_int_equal(timeline.first, first);
            assert_int_equal(timeline.end, end);
            for (uint32_t slice = 0; slice < SLICES; slice++) {
                bool is_inside = slice >= first && slice < end;
                struct timeline_point wanted = {0};
                if (is_inside) {
                    wanted = count_slice(&model, filter.range, slice);
                }
                assert_memory_equal(&timeline.points.items[slice], &wanted, sizeof(wanted));
            }
        }
    }
}

// A stack with both small and large blocks has an estimated time line. The time lines of small and
// large blocks add up to the whole, except for rounding by a byte for each stack.
static void timelines_of_all_sizes_add_up_to_the_whole(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model);
        CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
        draw(&model, &fixture);
        const uint32_t cut = rec_bucket_of(1 + below(300));
        const struct filter filters[] = {
            {0},
            {.has_sizes = true, .sizes = {0, cut}},
            {.has_sizes = true, .sizes = {cut, REC_BUCKET_COUNT}},
        };
        struct cut_timeline timelines[ARRAY_LEN(filters)];
        for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
            build_cut(&fixture, &filters[i], &timelines[i]);
        }
        for (unsigned slice = 0; slice < SLICES; slice++) {
            uint64_t whole = timelines[0].points.items[slice].live_bytes;
            uint64_t parts = timelines[1].points.items[slice].live_bytes +
                             timelines[2].points.items[slice].live_bytes;
            assert_int_equal(whole, live_bytes(&model, slice));
            assert_in_range(parts, whole > STACKS ? whole - STACKS : 0, whole + STACKS);
        }
        for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
            cut_timeline_release(&timelines[i]);
        }
    }
}

static void rows_without_blocks_in_the_range_do_not_pass(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
    drawn_profile_open("early 1 10 1 10 0 0 0 0 10\n@0 1 10 1 10 0\n"
                       "late 2 20 0 0 0 0 0 0 20\n@3 2 20 0 0 0\ncohort 3 - 2 20\n",
                       &fixture);
    struct filter filter = {.has_range = true};
    filter.range =
        time_range_covering(&fixture.recording, 100, UINT64_MAX, BLOCKS_IN_IN | BLOCKS_IN_OUT);
    CLEANUP(selection_release) struct selection selection = {0};
    assert_int_equal(profile_select(fixture.profile, &filter, &selection, NULL), ERR_OK);
    assert_int_equal(selection.rows.len, 1);
    assert_false(selection.is_everything);
    assert_int_equal(costs_get(&selection.costs.items[0], COST_LEAKED_BYTES), 20);
}

// Count what a group did in a slice. `is_site`: the group is a site, else a stack.
static uint64_t count_point(const struct model *model,
                            bool is_site,
                            unsigned group,
                            unsigned slice,
                            enum series_value value)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct block *block = &model->blocks[i];
        if ((is_site ? site_of(block->stack) : block->stack) != group) {
            continue;
        }
        bool is_born = block->born == slice;
        switch (value) {
        case SERIES_LIVE_BYTES:
            sum += is_live(block, slice) ? block->bytes : 0;
            break;
        case SERIES_ALLOCATIONS:
            sum += is_born;
            break;
        case SERIES_ALLOCATED_BYTES:
            sum += is_born ? block->bytes : 0;
            break;
        case SERIES_TEMPORARY:
            sum += is_born && block->is_temporary;
            break;
        }
    }
    return sum;
}

static uint64_t
count_score(const struct model *model, bool is_site, unsigned group, enum series_value value)
{
    uint64_t highest = 0;
    uint64_t sum = 0;
    for (unsigned slice = 0; slice < SLICES; slice++) {
        uint64_t here = count_point(model, is_site, group, slice, value);
        highest = here > highest ? here : highest;
        sum += here;
    }
    return value == SERIES_LIVE_BYTES ? highest : sum;
}

// Find the model's group for an entry, by the names of its call site and, for stacks, of its
// caller.
static unsigned
find_group(const struct drawn_profile *fixture, const struct row_groups *groups, uint32_t group)
{
    const struct profile *profile = fixture->profile;
    uint32_t stack = groups->groups.items[group].stack;
    const char *name = profile_location_function(profile, row_groups_location(groups, group));
    unsigned site = 0;
    while (strcmp(sites[site], name) != 0) {
        site++;
    }
    if (stack == REC_NONE || site < SITES - 1) {
        return site;
    }
    const struct call_tree_node *nodes = groups->sites.tree.nodes.items;
    uint32_t caller = nodes[nodes[stack].parent].location;
    return strcmp(profile_location_function(profile, caller), "left") == 0 ? SITES - 1 : SITES;
}

static void check_series(const struct model *model,
                         const struct drawn_profile *fixture,
                         enum series_value value,
                         enum row_group_by by,
                         size_t top_count)
{
    bool is_site = by == ROW_GROUPS_BY_SITE;
    CLEANUP(top_series_release) struct top_series series = {0};
    assert_int_equal(top_series_build(&fixture->selection, value, by, top_count, &series), ERR_OK);
    uint64_t lowest = UINT64_MAX;
    bool is_top[STACKS] = {0};
    for (size_t t = 0; t < series.top.len; t++) {
        const struct top_series_entry *entry = &series.top.items[t];
        unsigned group = find_group(fixture, &series.groups, entry->group);
        is_top[group] = true;
        expect_equal("score", group, entry->score, count_score(model, is_site, group, value));
        assert_true(entry->score <= lowest);
        lowest = entry->score;
        for (unsigned slice = 0; slice < SLICES; slice++) {
            expect_equal("value", slice, entry->values.items[slice],
                         count_point(model, is_site, group, slice, value));
        }
    }
    for (unsigned group = 0; group < (is_site ? SITES : STACKS); group++) {
        uint64_t score = count_score(model, is_site, group, value);
        assert_true(is_top[group] || score == 0 ||
                    (series.top.len == top_count && score <= lowest));
    }
    for (unsigned slice = 0; slice < SLICES; slice++) {
        uint64_t sum = series.rest.items[slice];
        for (size_t t = 0; t < series.top.len; t++) {
            sum += series.top.items[t].values.items[slice];
        }
        expect_equal("total", slice, sum,
                     series_value_of(&series.timeline.points.items[slice], value));
    }
}

static void charts_hold_the_highest_groups_and_the_rest(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model);
        CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
        draw(&model, &fixture);
        for (int value = SERIES_LIVE_BYTES; value <= SERIES_TEMPORARY; value++) {
            for (size_t top = 0; top <= STACKS; top++) {
                check_series(&model, &fixture, (enum series_value)value, ROW_GROUPS_BY_SITE, top);
                check_series(&model, &fixture, (enum series_value)value, ROW_GROUPS_BY_STACK, top);
            }
        }
    }
}

static uint64_t
count_bucket(const struct model *model, enum histogram_of of, int site, uint32_t bucket)
{
    uint64_t count = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct block *block = &model->blocks[i];
        bool is_size = of == HISTOGRAM_SIZES;
        uint64_t value = is_size ? block->bytes : block->lifetime_ms;
        count += rec_bucket_of(value) == bucket && (is_size || block->freed != NEVER) &&
                 (site < 0 || site_of(block->stack) == (unsigned)site);
    }
    return count;
}

static void check_histogram(const struct model *model,
                            const struct drawn_profile *fixture,
                            enum histogram_of of,
                            size_t top_count)
{
    CLEANUP(histogram_release) struct histogram histogram = {0};
    assert_int_equal(histogram_build(&fixture->selection, of, false, top_count, &histogram),
                     ERR_OK);
    for (uint32_t bucket = 0; bucket < REC_BUCKET_COUNT; bucket++) {
        uint64_t wanted = count_bucket(model, of, -1, bucket);
        if (bucket < histogram.first_bucket ||
            bucket >= histogram.first_bucket + histogram.total.len) {
            expect_equal("bucket out of range", bucket, 0, wanted);
            continue;
        }
        size_t place = bucket - histogram.first_bucket;
        expect_equal("bucket", bucket, histogram.total.items[place].count, wanted);
        uint64_t sum = histogram.rest.items[place].count;
        for (size_t t = 0; t < histogram.top.len; t++) {
            const struct histogram_entry *entry = &histogram.top.items[t];
            unsigned site = find_group(fixture, &histogram.groups, entry->group);
            expect_equal("top", bucket, entry->amounts.items[place].count,
                         count_bucket(model, of, (int)site, bucket));
            sum += entry->amounts.items[place].count;
        }
        expect_equal("sum", bucket, sum, wanted);
    }
}

static void histograms_count_every_block_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model);
        CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
        draw(&model, &fixture);
        for (size_t top = 0; top <= SITES; top += 2) {
            check_histogram(&model, &fixture, HISTOGRAM_SIZES, top);
            check_histogram(&model, &fixture, HISTOGRAM_LIFETIMES, top);
        }
    }
}

// The sizes that the errors of a bucket come from: of its blocks for sizes, of all blocks of the
// stacks in it for lifetimes, each rounded down to its bucket.
static struct sampled_sizes
sizes_of_bucket(const struct model *model, enum histogram_of of, uint32_t bucket)
{
    struct sampled_sizes sizes = {0};
    for (size_t i = 0; i < model->count; i++) {
        const struct block *block = &model->blocks[i];
        bool is_in = of == HISTOGRAM_SIZES && rec_bucket_of(block->bytes) == bucket;
        for (size_t k = 0; of == HISTOGRAM_LIFETIMES && !is_in && k < model->count; k++) {
            const struct block *other = &model->blocks[k];
            is_in = other->stack == block->stack && other->freed != NEVER &&
                    rec_bucket_of(other->lifetime_ms) == bucket;
        }
        if (is_in) {
            const uint64_t length = rec_bucket_low(rec_bucket_of(block->bytes)) + 1;
            const struct sampled_sizes part = {1.0 / (double)length, length};
            sampled_sizes_add(&sizes, &part);
        }
    }
    return sizes;
}

static void histograms_of_samples_have_the_sizes_of_their_blocks(void **state)
{
    (void)state;
    static const enum histogram_of kinds[] = {HISTOGRAM_SIZES, HISTOGRAM_LIFETIMES};
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model);
        CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
        draw(&model, &fixture);
        struct rec_totals *totals = &fixture.profile->recording.totals;
        for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
            for (totals->sample_bytes = 0; totals->sample_bytes <= 4096;
                 totals->sample_bytes += 4096) {
                CLEANUP(histogram_release) struct histogram histogram = {0};
                assert_int_equal(
                    histogram_build(&fixture.selection, kinds[kind], false, 0, &histogram), ERR_OK);
                for (uint32_t i = 0; i < histogram.total.len; i++) {
                    const struct sampled_sizes sizes = histogram_costs(&histogram, i).sizes;
                    struct sampled_sizes wanted = {0};
                    if (totals->sample_bytes > 0) {
                        wanted = sizes_of_bucket(&model, kinds[kind], histogram.first_bucket + i);
                    }
                    expect_equal("shortest", i, sizes.shortest_length, wanted.shortest_length);
                    assert_true(fabs(sizes.inverse_lengths - wanted.inverse_lengths) < 1e-9);
                }
            }
        }
    }
}

// Count the blocks of the stack with one size, which are certain in the heat map.
static uint64_t count_pairs(const struct model *model, uint32_t size, uint32_t lifetime)
{
    uint64_t count = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct block *block = &model->blocks[i];
        count += block->stack == 0 && block->freed != NEVER &&
                 rec_bucket_of(block->bytes) == size &&
                 rec_bucket_of(block->lifetime_ms) == lifetime;
    }
    return count;
}

static void the_heat_map_tells_what_is_certain(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model);
        CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
        draw(&model, &fixture);
        CLEANUP(heat_cell_vec_release) struct heat_cell_vec cells = {0};
        assert_int_equal(heat_map_build(&fixture.selection, &cells), ERR_OK);
        uint64_t by_lifetime[REC_BUCKET_COUNT] = {0};
        for (size_t i = 0; i < cells.len; i++) {
            struct heat_cell cell = cells.items[i];
            assert_true(cell.certain >= count_pairs(&model, cell.size, cell.lifetime));
            by_lifetime[cell.lifetime] += cell.certain + cell.estimated;
        }
        for (uint32_t bucket = 0; bucket < REC_BUCKET_COUNT; bucket++) {
            expect_equal("blocks of a lifetime", bucket, by_lifetime[bucket],
                         count_bucket(&model, HISTOGRAM_LIFETIMES, -1, bucket));
        }
    }
}

// The bytes of a stack that were never freed, whether its process exists at the end or not.
static uint64_t unfreed_bytes(const struct model *model, unsigned stack)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct block *block = &model->blocks[i];
        sum += block->stack == stack && block->freed == NEVER ? block->bytes : 0;
    }
    return sum;
}

static void what_is_alive_is_listed_most_bytes_first(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct model model;
        g_random = seed;
        make_model(&model);
        CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
        draw(&model, &fixture);
        CLEANUP(growth_release) struct growth growth = {0};
        assert_int_equal(growth_build(&fixture.selection, ROW_GROUPS_BY_STACK, 2, &growth), ERR_OK);
        uint64_t before = UINT64_MAX;
        uint64_t sum = 0;
        for (size_t i = 0; i < growth.entries.len; i++) {
            uint32_t group = growth.entries.items[i].group;
            unsigned stack = find_group(&fixture, &growth.groups, group);
            uint64_t bytes = costs_get(&growth.groups.groups.items[group].costs, COST_LEAKED_BYTES);
            expect_equal("alive", stack, bytes, unfreed_bytes(&model, stack));
            assert_true(bytes <= before);
            before = bytes;
            sum += bytes;
            // Only the first two entries were requested with details.
            assert_int_equal(i >= 2, growth.entries.items[i].first_slice == REC_NONE);
        }
        uint64_t all_bytes = 0;
        for (unsigned stack = 0; stack < STACKS; stack++) {
            all_bytes += unfreed_bytes(&model, stack);
        }
        expect_equal("all alive", 0, sum, all_bytes);
    }
}

// What an attached process allocates first is not its start.
static void only_a_started_process_has_a_start(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    drawn_profile_open("table 9 90\n@0 9 90 0 0 0\ncohort 0 - 9 90\nother 1 1 1 1\n@99 1 1 1 1 0\n",
                       &drawn);
    for (int is_attached = 0; is_attached < 2; is_attached++) {
        CLEANUP(growth_release) struct growth growth = {0};
        drawn.recording.processes[0].flags |= is_attached != 0 ? REC_PROCESS_ATTACHED : 0;
        assert_int_equal(growth_build(&drawn.selection, ROW_GROUPS_BY_SITE, 1, &growth), ERR_OK);
        assert_string_equal(growth_class_name(growth.entries.items[0].class),
                            is_attached != 0 ? "stopped" : "start_up");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_started_process_has_a_start),
        cmocka_unit_test(a_time_range_counts_blocks_by_birth_and_death),
        cmocka_unit_test(a_timeline_counts_the_blocks_of_its_range),
        cmocka_unit_test(timelines_of_all_sizes_add_up_to_the_whole),
        cmocka_unit_test(rows_without_blocks_in_the_range_do_not_pass),
        cmocka_unit_test(charts_hold_the_highest_groups_and_the_rest),
        cmocka_unit_test(histograms_count_every_block_once),
        cmocka_unit_test(histograms_of_samples_have_the_sizes_of_their_blocks),
        cmocka_unit_test(the_heat_map_tells_what_is_certain),
        cmocka_unit_test(what_is_alive_is_listed_most_bytes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
