// SPDX-License-Identifier: MIT
#include "server/api/answer.h"

#include "base/compiler.h"
#include "host/containers/memory_end.h"
#include "host/text/json_writer.h"

enum {
    ANSWER_MAX_MIB = 128,
    STATUS_TOO_LARGE = 413,
};

static enum err refuse_size(struct problem *problem)
{
    return problem_set(problem, STATUS_TOO_LARGE, PARAM_COUNT, ERR_LIMIT,
                       "the answer is larger than %d MiB: filter it, or ask for fewer rows",
                       ANSWER_MAX_MIB);
}

static MUST_USE enum err write_fields(struct query *query, const struct route *route)
{
    TRY(query_write_envelope(query));
    TRY(route->view != NULL ? route->view(&query->view) : route->answer(query));
    return view_end(&query->view);
}

enum err answer_write(const struct answer_source *source,
                      const struct route *route,
                      const struct request_args *args,
                      struct strbuf *out,
                      struct problem *problem)
{
    struct request request;
    memory_end_forget();
    TRY(request_parse(args, route->params, &request, &problem->parameter, &problem->info));
    CLEANUP(query_release)
    struct query query = {.settings = source->settings,
                          .request = &request,
                          .snapshot = source->snapshot,
                          .trees = source->trees,
                          .cancel = source->cancel,
                          .problem = problem};
    struct json_writer w;
    TRY(query_init(&query, route->has_selection));
    json_to_strbuf(&w, out, JSON_COMPACT);
    query.view.w = &w;
    out->most = (size_t)ANSWER_MAX_MIB << 20;
    enum err outcome = write_fields(&query, route);
    if (outcome == ERR_OK) {
        outcome = json_finish(&w) == ERR_OK ? memory_end_result() : ERR_NO_MEMORY;
    }
    const bool is_full = out->failed && out->len >= out->most / 2;
    const bool has_limit = outcome == ERR_LIMIT && problem->info.code == ERR_OK;
    return is_full || has_limit ? refuse_size(problem) : outcome;
}
