// SPDX-License-Identifier: MIT
// filter: compiles restrictions and applies them to every row. See filter.h.
//
// Patterns run once for each distinct name, never for each stack. Names are marked first, then
// frames, then nodes from the root outwards; a parent precedes its children.
#include "profile/select/filter.h"

#include <fnmatch.h>
#include <string.h>

#include "base/compiler.h"
#include "host/text/number.h"
#include "profile/select/pattern.h"

// Which parts of a location are compared. Of several, one must match.
struct compared {
    enum filter_name parts[3];
    size_t count;
};

static const struct compared by_function = {{FILTER_FUNCTION}, 1};
static const struct compared by_file = {{FILTER_FILE}, 1};
static const struct compared by_module = {{FILTER_MODULE}, 1};
static const struct compared by_any = {{FILTER_FUNCTION, FILTER_FILE, FILTER_MODULE}, 3};

struct restriction {
    const char *name; // in errors
    enum filter_name by;
    const struct compared *compared;
    enum pattern_kind kind;
    size_t offset; // of the text in struct filter
};

static const struct restriction restrictions[] = {
    {"function", FILTER_FUNCTION, &by_function, PATTERN_REGEX, offsetof(struct filter, function)},
    {"function", FILTER_FUNCTION, &by_function, PATTERN_TEXT,
     offsetof(struct filter, function_text)},
    {"file", FILTER_FILE, &by_file, PATTERN_REGEX, offsetof(struct filter, file)},
    {"file", FILTER_FILE, &by_file, PATTERN_TEXT, offsetof(struct filter, file_text)},
    {"module", FILTER_MODULE, &by_module, PATTERN_REGEX, offsetof(struct filter, module)},
    {"module", FILTER_MODULE, &by_module, PATTERN_TEXT, offsetof(struct filter, module_text)},
    {"focus", FILTER_FOCUS, &by_any, PATTERN_REGEX, offsetof(struct filter, focus)},
    {"ignore", FILTER_IGNORE, &by_any, PATTERN_REGEX, offsetof(struct filter, ignore)},
    {"show_from", FILTER_SHOW_FROM, &by_any, PATTERN_REGEX, offsetof(struct filter, show_from)},
    {"site", FILTER_SITE, &by_any, PATTERN_TEXT, offsetof(struct filter, site_text)},
};

static const char *text_of(const struct filter *filter, const struct restriction *restriction)
{
    return *(const char *const *)((const char *)filter + restriction->offset);
}

// The name of a location, as an id below name_count. Code outside any file has no module.
static uint32_t
name_of(const struct profile *profile, enum filter_name by, const struct code_location *location)
{
    const struct code_function *function = &profile->code.functions.items[location->function];
    switch (by) {
    case FILTER_FUNCTION:
        return function->name;
    case FILTER_FILE:
        return location->file;
    case FILTER_MODULE:
        return function->module;
    case FILTER_THREAD:
    case FILTER_PROCESS:
    case FILTER_FOCUS:
    case FILTER_IGNORE:
    case FILTER_SHOW_FROM:
    case FILTER_SITE:
    case FILTER_NAME_COUNT:
        break; // not a part of a location
    }
    return REC_NONE;
}

static size_t name_count(const struct profile *profile, enum filter_name by)
{
    return by == FILTER_MODULE ? profile->recording.module_count
                               : string_table_count(&profile->code.names);
}

static const char *get_name(const struct profile *profile, enum filter_name by, uint32_t name)
{
    return by == FILTER_MODULE ? profile_string(profile, profile->recording.modules[name].path)
                               : string_table_get(&profile->code.names, name);
}

// Mark the locations whose name matches, beside those that are marked. Each name is compared once.
static MUST_USE enum err mark_locations(const struct profile *profile,
                                        enum filter_name by,
                                        struct cancel *cancel,
                                        struct pattern *pattern,
                                        struct flag_vec *locations,
                                        struct err_info *info)
{
    enum verdict {
        UNKNOWN,
        NO,
        YES
    };
    const struct code_location_vec *all = &profile->code.locations;
    CLEANUP(flag_vec_release) struct flag_vec verdicts = {0};
    TRY(flag_vec_resize(&verdicts, name_count(profile, by)));
    TRY(flag_vec_resize(locations, all->len));
    for (size_t i = 0; i < all->len; i++) {
        uint32_t name = name_of(profile, by, &all->items[i]);
        TRY(cancel_step(cancel));
        if (name == REC_NONE) {
            continue;
        }
        uint8_t *verdict = &verdicts.items[name];
        if (*verdict == UNKNOWN) {
            const char *text = get_name(profile, by, name);
            bool matches = by == FILTER_FUNCTION ? pattern_matches_function(pattern, text)
                                                 : pattern_matches(pattern, text);
            *verdict = matches ? YES : NO;
            TRY(pattern_result(pattern, info));
        }
        locations->items[i] |= *verdict == YES;
    }
    return ERR_OK;
}

static bool
frame_has(const struct profile *profile, uint32_t frame, const struct flag_vec *locations)
{
    struct code_chain chain = code_index_chain(&profile->code, frame);
    for (size_t i = 0; i < chain.count; i++) {
        if (locations->items[chain.locations[i]] != 0) {
            return true;
        }
    }
    return false;
}

// Mark the nodes whose stack has a marked location.
static MUST_USE enum err
mark_nodes(const struct profile *profile, const struct flag_vec *locations, struct flag_vec *nodes)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(flag_vec_release) struct flag_vec frames = {0};
    TRY(flag_vec_resize(&frames, recording->frame_count));
    for (size_t i = 0; i < recording->frame_count; i++) {
        frames.items[i] = frame_has(profile, (uint32_t)i, locations);
    }
    TRY(flag_vec_resize(nodes, recording->node_count));
    for (size_t i = 1; i < recording->node_count; i++) {
        struct rec_node node = recording->nodes[i];
        nodes->items[i] = nodes->items[node.parent] | frames.items[node.frame];
    }
    return ERR_OK;
}

// Mark the nodes whose call site is a marked location.
static MUST_USE enum err
mark_sites(const struct profile *profile, const struct flag_vec *locations, struct flag_vec *nodes)
{
    TRY(flag_vec_resize(nodes, profile->recording.node_count));
    for (uint32_t i = 1; i < profile->recording.node_count; i++) {
        const uint32_t location = profile_call_site(profile, i).location;
        nodes->items[i] = location != REC_NONE && locations->items[location] != 0;
    }
    return ERR_OK;
}

// The parts of the recording that pass; an empty vector passes everything.
struct passes {
    struct flag_vec threads;
    struct flag_vec nodes;
    struct costs_vec costs; // by row of the recording, if there is a time range
    uint32_t unmatched;     // these three: see struct selection
    struct flag_vec shown;
    struct flag_vec starts;
    struct u32_vec rules; // by node: the rule that suppresses its leaks, + 1
};

static void passes_release(struct passes *passes)
{
    flag_vec_release(&passes->threads);
    flag_vec_release(&passes->nodes);
    flag_vec_release(&passes->shown);
    flag_vec_release(&passes->starts);
    costs_vec_release(&passes->costs);
    u32_vec_release(&passes->rules);
}

static bool has_mark(const struct flag_vec *marks)
{
    return marks->len > 0 && memchr(marks->items, 1, marks->len) != NULL;
}

static MUST_USE enum err restrict_nodes(const struct profile *profile,
                                        const struct restriction *restriction,
                                        const struct filter *filter,
                                        struct passes *passes,
                                        struct err_info *info)
{
    CLEANUP(flag_vec_release) struct flag_vec locations = {0};
    CLEANUP(flag_vec_release) struct flag_vec has = {0};
    for (size_t i = 0; i < restriction->compared->count; i++) {
        CLEANUP(pattern_release) struct pattern pattern = {0};
        TRY(pattern_init(&pattern, restriction->kind, text_of(filter, restriction),
                         restriction->name, info));
        TRY(mark_locations(profile, restriction->compared->parts[i], filter->cancel, &pattern,
                           &locations, info));
    }
    passes->unmatched |= has_mark(&locations) ? 0 : 1U << restriction->by;
    TRY(restriction->by == FILTER_SITE ? mark_sites(profile, &locations, &has)
                                       : mark_nodes(profile, &locations, &has));
    for (size_t i = 0; i < has.len; i++) {
        passes->nodes.items[i] &= has.items[i] ^ (restriction->by == FILTER_IGNORE);
    }
    if (restriction->by == FILTER_SHOW_FROM) {
        passes->shown = has;
        passes->starts = locations;
        has = locations = (struct flag_vec){0};
    }
    return ERR_OK;
}

// Match by id or by name, since a name may be a number.
static bool
thread_matches(const struct profile *profile, const struct rec_thread *thread, const char *wanted)
{
    uint64_t number;
    const bool is_id = number_parse(wanted, UINT32_MAX, &number) && thread->thread_id == number;
    return is_id || fnmatch(wanted, profile_string(profile, thread->name), 0) == 0;
}

static MUST_USE enum err
mark_threads(const struct profile *profile, const struct filter *filter, struct passes *passes)
{
    const struct recording *recording = &profile->recording;
    bool has_process = filter->pid == 0;
    bool has_thread = filter->thread == NULL;
    TRY(flag_vec_resize(&passes->threads, recording->thread_count));
    for (size_t i = 0; i < recording->thread_count; i++) {
        const struct rec_thread *thread = &recording->threads[i];
        bool is_of_process =
            filter->pid == 0 || recording->processes[thread->process].pid == filter->pid;
        bool matches = filter->thread == NULL || thread_matches(profile, thread, filter->thread);
        passes->threads.items[i] = is_of_process && matches;
        has_process |= is_of_process;
        has_thread |= matches;
    }
    passes->unmatched |=
        (has_process ? 0 : 1U << FILTER_PROCESS) | (has_thread ? 0 : 1U << FILTER_THREAD);
    return ERR_OK;
}

static MUST_USE enum err find_passes(const struct profile *profile,
                                     const struct filter *filter,
                                     struct passes *passes,
                                     struct err_info *info)
{
    if (filter->pid != 0 || filter->thread != NULL) {
        TRY(mark_threads(profile, filter, passes));
    }
    for (size_t i = 0; i < ARRAY_LEN(restrictions); i++) {
        if (text_of(filter, &restrictions[i]) == NULL) {
            continue;
        }
        if (passes->nodes.len == 0) {
            TRY(flag_vec_resize(&passes->nodes, profile->recording.node_count));
            for (size_t node = 0; node < passes->nodes.len; node++) {
                passes->nodes.items[node] = 1;
            }
        }
        TRY(restrict_nodes(profile, &restrictions[i], filter, passes, info));
    }
    if (filter->suppressions != NULL) {
        TRY(suppressions_of_nodes(filter->suppressions, profile, &passes->rules));
    }
    return filter->has_range ? time_range_costs(profile, filter->range, &passes->costs) : ERR_OK;
}

static bool lets_pass(const struct flag_vec *marks, uint32_t index)
{
    return marks->items == NULL || marks->items[index] != 0;
}

// The costs of the row under the ranges of the filter.
static struct bucket_cut cut_row(const struct profile *profile,
                                 const struct filter *filter,
                                 const struct passes *passes,
                                 uint32_t index)
{
    const struct recording *recording = &profile->recording;
    struct bucket_cut cut = {.costs = passes->costs.items != NULL
                                          ? passes->costs.items[index]
                                          : costs_of_row(&recording->rows[index])};
    if (filter->has_sizes) {
        bucket_cut_sizes(recording, index, filter->sizes, &cut);
    }
    if (filter->has_lifetimes) {
        bucket_cut_lifetimes(recording, index, filter->lifetimes, &cut);
    }
    return cut;
}

static bool is_partial(const struct filter *filter)
{
    return filter->has_range || filter->has_sizes || filter->has_lifetimes;
}

// Count the leaks of the row that was taken last. It runs for every row, so that `rules` has an
// entry for each. selection_costs() removes the leaked costs later.
static MUST_USE enum err suppress_row(struct selection *selection, uint32_t rule)
{
    struct costs costs = selection_costs(selection, selection->rows.len - 1);
    uint64_t blocks = costs_get(&costs, COST_LEAKED_ALLOCATIONS);
    uint64_t bytes = costs_get(&costs, COST_LEAKED_BYTES);
    rule = blocks > 0 || bytes > 0 ? rule : 0;
    if (rule != 0) {
        struct suppression_match *counters[] = {&selection->matches.items[rule - 1],
                                                &selection->suppressed};
        for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
            counters[i]->stack_count++;
            counters[i]->live_blocks += blocks;
            counters[i]->live_bytes += bytes;
        }
    }
    return u32_vec_push(&selection->rules, rule);
}

static MUST_USE enum err take_row(struct selection *selection,
                                  const struct filter *filter,
                                  const struct passes *passes,
                                  uint32_t index)
{
    const struct rec_row *row = &selection->profile->recording.rows[index];
    if (!lets_pass(&passes->threads, row->thread) || !lets_pass(&passes->nodes, row->node)) {
        return ERR_OK;
    }
    uint32_t rule = passes->rules.len > 0 ? passes->rules.items[row->node] : 0;
    if (is_partial(filter)) {
        struct bucket_cut cut = cut_row(selection->profile, filter, passes, index);
        if (!costs_any(&cut.costs)) {
            return ERR_OK;
        }
        for (int cost = 0; cost < COST_COUNT; cost++) {
            bool is_leaked = cost == COST_LEAKED_BYTES || cost == COST_LEAKED_ALLOCATIONS;
            bool is_estimated = (cut.estimated >> cost & 1) != 0 && (rule == 0 || !is_leaked);
            selection->estimated.values[cost] += is_estimated ? cut.costs.values[cost] : 0;
        }
        TRY(costs_vec_push(&selection->costs, cut.costs));
    }
    TRY(u32_vec_push(&selection->rows, index));
    return passes->rules.len > 0 ? suppress_row(selection, rule) : ERR_OK;
}

// Refuse ranges of data that was not recorded: an empty answer would be wrong.
static MUST_USE enum err
check_ranges(const struct recording *recording, const struct filter *filter, struct err_info *info)
{
    bool has_blocks = recording->totals.allocations > 0;
    if (filter->has_sizes && has_blocks && recording->size_bucket_count == 0) {
        return err_set(info, ERR_UNSUPPORTED, "the recording has no block sizes");
    }
    if (filter->has_lifetimes && recording->totals.frees > 0 &&
        recording->lifetime_bucket_count == 0) {
        return err_set(info, ERR_UNSUPPORTED, "the recording has no block lifetimes");
    }
    return ERR_OK;
}

static uint32_t unknown_costs(const struct filter *filter)
{
    uint32_t unknown =
        filter->has_range ? 1U << COST_TEMPORARY_BYTES | 1U << COST_OWN_PEAK_BYTES : 0;
    return filter->has_lifetimes ? unknown | bucket_lifetime_unknown : unknown;
}

static bool filter_restricts(const struct filter *filter)
{
    for (size_t i = 0; i < ARRAY_LEN(restrictions); i++) {
        if (text_of(filter, &restrictions[i]) != NULL) {
            return true;
        }
    }
    return filter->thread != NULL || filter->pid != 0 || is_partial(filter);
}

enum err profile_select(const struct profile *profile,
                        const struct filter *filter,
                        struct selection *out,
                        struct err_info *info)
{
    static const struct filter everything = {0};
    static const struct bucket_range all_buckets = {0, REC_BUCKET_COUNT};
    filter = filter != NULL ? filter : &everything;
    CLEANUP(passes_release) struct passes passes = {0};
    TRY(check_ranges(&profile->recording, filter, info));
    TRY(find_passes(profile, filter, &passes, info));

    const struct time_range whole_run = {0, (uint32_t)profile->recording.slice_count,
                                         BLOCKS_IN_IN | BLOCKS_IN_OUT};
    CLEANUP(selection_release)
    struct selection selection = {.profile = profile, .cancel = filter->cancel};
    selection.is_everything = !filter_restricts(filter);
    selection.unknown = profile_unknown_costs(profile) | unknown_costs(filter);
    selection.unmatched = passes.unmatched;
    selection.shown = TAKE(passes.shown);
    selection.starts = TAKE(passes.starts);
    selection.has_range = filter->has_range;
    selection.range = filter->has_range ? filter->range : whole_run;
    selection.sizes = filter->has_sizes ? filter->sizes : all_buckets;
    selection.lifetimes = filter->has_lifetimes ? filter->lifetimes : all_buckets;
    if (filter->suppressions != NULL) {
        TRY(suppression_match_vec_resize(&selection.matches, filter->suppressions->rules.len));
    }
    TRY(u32_vec_reserve(&selection.rows, profile->recording.row_count));
    for (size_t i = 0; i < profile->recording.row_count; i++) {
        TRY(cancel_step(filter->cancel));
        TRY(take_row(&selection, filter, &passes, (uint32_t)i));
    }
    *out = TAKE(selection);
    return ERR_OK;
}
