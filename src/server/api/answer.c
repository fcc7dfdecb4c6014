// SPDX-License-Identifier: MIT
// answer: see answer.h.
#include "server/api/answer.h"

#include "base/compiler.h"
#include "host/text/json_writer.h"

enum err answer_write(const struct answer_source *source,
                      const struct route *route,
                      const char *target,
                      struct strbuf *out,
                      struct problem *problem)
{
    CLEANUP(request_release) struct request request = {0};
    TRY(request_parse(target_query(target), route->params, &request, &problem->parameter,
                      &problem->info));
    CLEANUP(question_release)
    struct question question = {.settings = source->settings,
                                .request = &request,
                                .snapshot = source->snapshot,
                                .trees = source->trees,
                                .cancel = source->cancel,
                                .problem = problem};
    struct json_writer w;
    TRY(question_init(&question, route->has_selection));
    json_to_strbuf(&w, out, JSON_COMPACT);
    question.view.w = &w;
    json_begin_object(&w);
    TRY(question_write_envelope(&question));
    TRY(route->answer(&question));
    TRY(view_end(&question.view));
    json_end_object(&w);
    return json_finish(&w) == ERR_OK ? ERR_OK : ERR_NO_MEMORY;
}
