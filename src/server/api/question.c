// SPDX-License-Identifier: MIT
// question: see question.h.
#include "server/api/question.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/time/growth.h"
#include "server/api/filter_params.h"
#include "server/http/encoding.h"
#include "views_json/views/views.h"

enum {
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
    (void)vsnprintf(problem->info.text, sizeof(problem->info.text), format, arguments); // truncates
    va_end(arguments);
    problem->status = status;
    problem->parameter = parameter != PARAM_COUNT ? request_param_name(parameter) : NULL;
    problem->info.code = code;
    return code;
}

enum err question_choose_by(struct question *question,
                            enum request_by least,
                            enum request_by otherwise,
                            enum request_by *out)
{
    const enum request_by by =
        (enum request_by)request_number(question->request, PARAM_BY, otherwise);
    if (by < least || by > least + 1) {
        return question_refuse(question, 0, PARAM_BY, ERR_INVALID,
                               "by: there is no \"%s\" to choose",
                               request_choice_name(PARAM_BY, by));
    }
    *out = by;
    return ERR_OK;
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

static MUST_USE enum err
select_one(struct question *question, const struct opened *opened, struct selection *out)
{
    const struct profile *profile = opened->profile;
    struct filter filter = question->filter;
    filter.suppressions = &opened->rules;
    TRY(filter_params_read_time(question, &profile->recording, &filter));
    if (profile == question->profile) {
        question->filter = filter;
    }
    enum err problem = profile_select(profile, &filter, out, &question->problem->info);
    return problem == ERR_OK ? ERR_OK : filter_params_blame(question, problem);
}

enum err question_init(struct question *question, bool with_selection)
{
    const struct request *request = question->request;
    TRY(choose_recording(question));
    question->view = (struct view){
        .profile = question->profile,
        .code = question->code,
        .costs = request_number(request, PARAM_COSTS, costs_by_default),
        .sort = (enum cost)request_number(request, PARAM_SORT, COST_PEAK_BYTES),
        .score = (enum side_score)request_number(request, PARAM_SORT_BY, SCORE_LARGER),
        .layout = VIEW_COLUMNS,
        .filter = &question->filter,
    };
    question->has_selection = with_selection;
    if (!with_selection) {
        return ERR_OK;
    }
    if (question->settings->filter != NULL) {
        question->filter = *question->settings->filter;
    }
    TRY(filter_params_read(question, &question->filter));
    question->filter.cancel = question->cancel;
    TRY(select_one(question, question->opened, &question->selection));
    question->view.selection = &question->selection;
    if (question->is_diff) {
        TRY(select_one(question, question->snapshot->sides[SIDE_OLD], &question->old_selection));
        question->view.old_selection = &question->old_selection;
    }
    return ERR_OK;
}

void question_release(struct question *question)
{
    view_release(&question->view);
    selection_release(&question->selection);
    selection_release(&question->old_selection);
}

enum err question_write_envelope(struct question *question)
{
    json_key_u64(question->view.w, "version", VIEW_JSON_VERSION);
    json_key_u64(question->view.w, "generation", question->snapshot->generation);
    return question->has_selection ? view_selection(&question->view, &question->opened->whole.costs)
                                   : ERR_OK;
}

// Hash everything that the nodes of a tree depend on.
static MUST_USE enum err
tree_key(const struct question *question, struct tree_view_spec spec, uint64_t *out)
{
    CLEANUP(strbuf_release) struct strbuf all = {0};
    strbuf_printf(&all, "%llu %d %d %d %d", (unsigned long long)question->snapshot->generation,
                  question->is_diff, (int)spec.direction, (int)spec.key, spec.collapses);
    filter_params_append(question->request, &all);
    TRY(strbuf_result(&all));
    *out = content_hash(all.data, all.len);
    return ERR_OK;
}

enum err
question_tree(struct question *question, struct tree_view_spec spec, struct cached_tree **out)
{
    uint64_t key;
    TRY(tree_key(question, spec, &key));
    struct cached_tree *cached = tree_cache_find(question->trees, key);
    if (cached == NULL) {
        CLEANUP(tree_view_release) struct tree_view tree = {0};
        TRY(tree_view_build(question->code, &question->selection,
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
        [CAPABILITY_ADHOC] = "adhoc",
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
    case CAPABILITY_ADHOC:
        return recording->adhoc_count > 0;
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
