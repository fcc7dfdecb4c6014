// SPDX-License-Identifier: MIT
// question: see question.h.
#include "server/question.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/growth.h"
#include "server/columns.h"
#include "server/encoding.h"

enum {
    API_VERSION = 1,
    STATUS_CONFLICT = 409,
};

static const uint64_t costs_by_default =
    (uint64_t)1 << COST_PEAK_BYTES | (uint64_t)1 << COST_LEAKED_BYTES |
    (uint64_t)1 << COST_ALLOCATIONS | (uint64_t)1 << COST_TEMPORARY |
    (uint64_t)1 << COST_ALLOCATED_BYTES;

enum err question_refuse(struct question *question,
                         int status,
                         enum param parameter,
                         enum err code,
                         const char *format,
                         ...)
{
    struct problem *problem = question->problem;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(problem->info.text, sizeof(problem->info.text), format, arguments); // cut
    va_end(arguments);
    problem->status = status;
    problem->parameter = parameter != PARAM_COUNT ? request_param_name(parameter) : NULL;
    problem->info.code = code;
    return code;
}

static MUST_USE enum err choose_recording(struct question *question)
{
    const struct request *request = question->request;
    struct snapshot *snapshot = question->snapshot;
    enum side side =
        request_number(request, PARAM_RECORDING, SIDE_NEW) == SIDE_OLD ? SIDE_OLD : SIDE_NEW;
    question->is_diff = request_number(request, PARAM_DIFF, 0) == 1;
    if (snapshot->sides[SIDE_OLD] == NULL && (question->is_diff || side == SIDE_OLD)) {
        return question_refuse(question, STATUS_CONFLICT,
                               question->is_diff ? PARAM_DIFF : PARAM_RECORDING, ERR_INVALID,
                               "there is no second recording to compare with");
    }
    if (question->is_diff && side == SIDE_OLD) {
        return question_refuse(question, 0, PARAM_RECORDING, ERR_INVALID,
                               "recording: a diff is always of both");
    }
    question->opened = snapshot->sides[side];
    question->profile = question->opened->profile;
    question->code = question->is_diff ? &snapshot->both : &snapshot->alone[side];
    return ERR_OK;
}

static void read_filter(const struct request *request, struct filter *filter)
{
    const struct {
        enum param param;
        const char **field;
    } texts[] = {
        {PARAM_FUNCTION, &filter->function_text}, {PARAM_FUNCTION_REGEX, &filter->function},
        {PARAM_FILE, &filter->file_text},         {PARAM_FILE_REGEX, &filter->file},
        {PARAM_MODULE, &filter->module_text},     {PARAM_MODULE_REGEX, &filter->module},
        {PARAM_THREAD, &filter->thread},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *text = request_text(request, texts[i].param);
        *texts[i].field = text != NULL ? text : *texts[i].field;
    }
    filter->pid = (uint32_t)request_number(request, PARAM_PROCESS, filter->pid);
}

// The first parameter by which a time range was asked for.
static enum param range_param(const struct request *request)
{
    static const enum param params[] = {PARAM_FROM_MS, PARAM_TO_MS, PARAM_CLASSES};
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(params) && !request_has(request, params[i])) {
        i++;
    }
    return params[i];
}

// The range in slices of one recording.
static MUST_USE enum err
read_range(struct question *question, const struct recording *recording, struct filter *filter)
{
    const struct request *request = question->request;
    filter->has_range = request_has(request, PARAM_FROM_MS) || request_has(request, PARAM_TO_MS) ||
                        request_has(request, PARAM_CLASSES);
    if (!filter->has_range) {
        return ERR_OK;
    }
    if (!time_range_is_known(recording)) {
        return question_refuse(question, STATUS_CONFLICT, range_param(request), ERR_INVALID,
                               "the recording has no time slices, so it cannot be asked for a "
                               "time range");
    }
    uint64_t from_ms = request_number(request, PARAM_FROM_MS, 0);
    uint64_t to_ms = request_number(request, PARAM_TO_MS, UINT64_MAX);
    if (to_ms <= from_ms) {
        return question_refuse(question, 0, PARAM_TO_MS, ERR_INVALID,
                               "to_ms: the range ends before it begins");
    }
    uint64_t classes = request_number(request, PARAM_CLASSES, BLOCKS_IN_IN | BLOCKS_IN_OUT);
    filter->range = time_range_covering(recording, from_ms, to_ms, (uint32_t)classes);
    return ERR_OK;
}

// A pattern's message begins with the parameter's name.
static enum err blame_pattern(struct question *question, enum err problem)
{
    static const enum param patterns[] = {PARAM_FUNCTION_REGEX, PARAM_FILE_REGEX,
                                          PARAM_MODULE_REGEX};
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        const char *name = request_param_name(patterns[i]);
        size_t len = strcspn(question->problem->info.text, ":");
        if (strncmp(name, question->problem->info.text, len) == 0) {
            question->problem->parameter = name;
        }
    }
    return problem;
}

static MUST_USE enum err
select_one(struct question *question, const struct opened *opened, struct selection *out)
{
    const struct profile *profile = opened->profile;
    struct filter filter = question->filter;
    filter.suppressions = &opened->rules;
    TRY(read_range(question, &profile->recording, &filter));
    if (profile == question->profile) {
        question->filter = filter;
    }
    enum err problem = profile_select(profile, &filter, out, &question->problem->info);
    return problem == ERR_OK ? ERR_OK : blame_pattern(question, problem);
}

enum err question_init(struct question *question, bool with_selection)
{
    const struct request *request = question->request;
    TRY(choose_recording(question));
    question->costs = request_number(request, PARAM_COSTS, costs_by_default);
    question->sort = (enum cost)request_number(request, PARAM_SORT, COST_PEAK_BYTES);
    question->has_selection = with_selection;
    if (!with_selection) {
        return ERR_OK;
    }
    if (question->settings->filter != NULL) {
        question->filter = *question->settings->filter;
    }
    read_filter(request, &question->filter);
    question->filter.cancel = question->cancel;
    TRY(select_one(question, question->opened, &question->selection));
    if (question->is_diff) {
        TRY(select_one(question, question->snapshot->sides[SIDE_OLD], &question->old_selection));
    }
    return ERR_OK;
}

void question_release(struct question *question)
{
    selection_release(&question->selection);
    selection_release(&question->old_selection);
}

static void write_filter(const struct question *question, struct json_writer *w)
{
    static const enum param params[] = {
        PARAM_FUNCTION,     PARAM_FUNCTION_REGEX, PARAM_FILE,    PARAM_FILE_REGEX, PARAM_MODULE,
        PARAM_MODULE_REGEX, PARAM_THREAD,         PARAM_CLASSES, PARAM_RECORDING,
    };
    static const enum param numbers[] = {PARAM_PROCESS, PARAM_FROM_MS, PARAM_TO_MS};
    json_key(w, "filter");
    json_begin_object(w);
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        json_key_string(w, request_param_name(params[i]),
                        request_text(question->request, params[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        json_key(w, request_param_name(numbers[i]));
        if (request_has(question->request, numbers[i])) {
            json_u64(w, request_number(question->request, numbers[i], 0));
        } else {
            json_null(w);
        }
    }
    json_end_object(w);
}

static void write_range(const struct question *question, struct json_writer *w)
{
    struct time_range range = question->filter.range;
    json_key(w, "range");
    if (!question->filter.has_range) {
        json_null(w);
        return;
    }
    uint64_t slice_ms = question->profile->recording.slice_ms;
    json_begin_object(w);
    json_key_u64(w, "from_ms", range.first * slice_ms);
    json_key_u64(w, "to_ms", range.end * slice_ms);
    json_key(w, "classes");
    json_begin_array(w);
    for (uint64_t class = 0; class < 4; class ++) {
        if ((range.classes >> class & 1) != 0) {
            json_string(w, request_choice_name(PARAM_CLASSES, class));
        }
    }
    json_end_array(w);
    json_end_object(w);
}

static void write_unavailable(const struct question *question, struct json_writer *w)
{
    json_key(w, "unavailable");
    json_begin_array(w);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if ((question->selection.unknown >> cost & 1) != 0) {
            json_string(w, cost_get_info((enum cost)cost)->key);
        }
    }
    json_end_array(w);
}

static MUST_USE enum err
write_totals(struct json_writer *w, const char *key, const struct selection *selection)
{
    struct summary summary;
    TRY(summary_build(selection, &summary));
    costs_object(w, key, ALL_COSTS, &summary.costs);
    return ERR_OK;
}

enum err question_write_envelope(struct question *question, struct json_writer *w)
{
    json_key_u64(w, "version", API_VERSION);
    json_key_u64(w, "generation", question->snapshot->generation);
    if (!question->has_selection) {
        return ERR_OK;
    }
    json_key(w, "selection");
    json_begin_object(w);
    write_filter(question, w);
    write_range(question, w);
    TRY(write_totals(w, "totals", &question->selection));
    costs_object(w, "recording_totals", ALL_COSTS, &question->opened->whole.costs);
    write_unavailable(question, w);
    if (question->is_diff) {
        TRY(write_totals(w, "baseline_totals", &question->old_selection));
    } else {
        json_key(w, "baseline_totals");
        json_null(w);
    }
    json_end_object(w);
    return ERR_OK;
}

// All that the nodes of a tree depend on, as one number.
static MUST_USE enum err
tree_key(const struct question *question, struct shown_tree_spec spec, uint64_t *out)
{
    static const enum param params[] = {
        PARAM_FUNCTION, PARAM_FUNCTION_REGEX, PARAM_FILE,    PARAM_FILE_REGEX,
        PARAM_MODULE,   PARAM_MODULE_REGEX,   PARAM_THREAD,  PARAM_PROCESS,
        PARAM_FROM_MS,  PARAM_TO_MS,          PARAM_CLASSES, PARAM_RECORDING,
    };
    CLEANUP(strbuf_release) struct strbuf all = {0};
    strbuf_printf(&all, "%llu %d %d %d %d", (unsigned long long)question->snapshot->generation,
                  question->is_diff, (int)spec.direction, (int)spec.key, spec.collapses);
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        const char *text = request_text(question->request, params[i]);
        strbuf_append_char(&all, '\0');
        strbuf_append_text(&all, text != NULL ? text : "");
    }
    TRY(strbuf_result(&all));
    *out = content_hash(all.data, all.len);
    return ERR_OK;
}

enum err
question_tree(struct question *question, struct shown_tree_spec spec, struct cached_tree **out)
{
    uint64_t key;
    TRY(tree_key(question, spec, &key));
    struct cached_tree *cached = tree_cache_find(question->trees, key);
    if (cached == NULL) {
        CLEANUP(shown_tree_release) struct shown_tree tree = {0};
        TRY(shown_tree_build(question->code, &question->selection,
                             question->is_diff ? &question->old_selection : NULL, spec, &tree));
        cached = tree_cache_add(question->trees, key, question->snapshot, &tree);
    }
    if (cached == NULL) {
        return ERR_NO_MEMORY;
    }
    *out = cached;
    return ERR_OK;
}

const char *capability_name(enum capability capability)
{
    static const char *const names[CAPABILITY_COUNT] = {
        [CAPABILITY_TIME_RANGE] = "time_range",
        [CAPABILITY_SLICES] = "slices",
        [CAPABILITY_SIZES] = "sizes",
        [CAPABILITY_LIFETIMES] = "lifetimes",
        [CAPABILITY_RSS] = "rss",
        [CAPABILITY_MAPPINGS] = "mappings",
        [CAPABILITY_GROWTH] = "growth",
        [CAPABILITY_SOURCE] = "source",
    };
    return names[capability];
}

bool question_can(const struct question *question, enum capability capability)
{
    const struct recording *recording = &question->profile->recording;
    switch (capability) {
    case CAPABILITY_TIME_RANGE:
        return time_range_is_known(recording);
    case CAPABILITY_SLICES:
        return recording->slice_count > 0 && recording->slice_ms > 0;
    case CAPABILITY_SIZES:
        return recording->size_bucket_count > 0;
    case CAPABILITY_LIFETIMES:
        return recording->lifetime_bucket_count > 0;
    case CAPABILITY_RSS:
        return recording->rss_sample_count > 0;
    case CAPABILITY_GROWTH:
        return growth_is_known(recording);
    case CAPABILITY_SOURCE:
        return !question->settings->hides_sources;
    case CAPABILITY_MAPPINGS:
        return recording->part_count > 0;
    case CAPABILITY_COUNT:
        break;
    }
    return false;
}

enum err question_need(struct question *question, enum capability capability, const char *what)
{
    if (question_can(question, capability)) {
        return ERR_OK;
    }
    return question_refuse(question, STATUS_CONFLICT, PARAM_COUNT, ERR_UNSUPPORTED,
                           "the recording has no %s", what);
}
